//! The producer: loads the codes and scales of the weights, and A.

use super::context::{AOperand, CodedTiles, Context};
use super::decode::DecodeTarget;
use super::units::{K_BLOCK, PANEL_BYTES, PANEL_K};
use crate::gemm::tile_scheduler::TileCoord;
use crate::roles;
use warpline_ir::builder::*;
use warpline_ir::ops::policy::CacheHint;

/// Declares the role. It loads weights ahead of A, which an earlier launch writes.
pub(super) fn role<T: DecodeTarget>(k: Builder, context: &Context<'_, T>) {
    let (lead, pdl_safe) = (
        context.config.weight_lead(context.spec.outputs),
        context.spec.weights_are_pdl_safe,
    );
    let load = || {
        let maps = context.weights.iter().flatten();
        maps.for_each(|map| map.prefetch());
        if let AOperand::Wide(x) = context.a {
            x.prefetch();
        }
        context.out.prefetch();
        if !pdl_safe {
            wait_prerequisites();
        }
        context.each_tile(|tile| {
            steps(lead).each(|i| context.load_weights(tile, i));
            if pdl_safe && !context.spec.is_single_launch() {
                wait_prerequisites();
            }
            steps(context.rounds - lead).each(|i| {
                context.load_tokens(tile, i);
                context.load_weights(tile, i + lead);
            });
            let last = context.rounds - lead;
            steps(lead).each(|i| context.load_tokens(tile, last + i));
        });
    };
    let registers = context.config.schedule.registers().map(|r| r.load);
    roles::copy_role(k, "load", registers).body(|| elect(load));
}

impl<T: DecodeTarget> Context<'_, T> {
    /// Returns the index along K of the panel that a pair of rings gets in a round.
    #[track_caller]
    fn panel_index(&self, round: Reg<u32>, ring_pair: u32) -> Reg<u32> {
        self.first_panel() + round * self.rings.len() as u32 + ring_pair
    }

    /// Loads the weights of a round; TMA zero-fills past K.
    #[track_caller]
    fn load_weights(&self, tile: TileCoord, round: Reg<u32>) {
        for (i, rings) in (0..).zip(&self.rings) {
            let slot = rings.weights.acquire();
            self.load_codes(&slot, 0, tile, self.panel_index(round, i));
            self.load_scales(&slot, tile, self.panel_index(round, i));
            slot.commit();
        }
    }

    /// Loads panel `panel_index` of the codes of the weights into a slot, from row `row` on.
    #[track_caller]
    pub(super) fn load_codes(
        &self,
        slot: &Slot<CodedTiles, Producing>,
        row: u32,
        tile: TileCoord,
        panel_index: Reg<u32>,
    ) {
        let n = self.spec.weight_rows();
        for (i, &[codes, _]) in (0..).zip(&self.weights) {
            let row = row + i * n;
            let to = slot.0.slice(row..row + n, 0..PANEL_BYTES);
            slot.load_with(
                codes,
                to,
                [panel_index * PANEL_BYTES, tile.n * n],
                None,
                self.weight_hint(),
            );
        }
    }

    /// Loads the weight scales from panel `panel_index` on into the first words of a slot's scales.
    #[track_caller]
    pub(super) fn load_scales(
        &self,
        slot: &Slot<CodedTiles, Producing>,
        tile: TileCoord,
        panel_index: Reg<u32>,
    ) {
        let n = self.spec.weight_rows();
        let words = self.spec.scale_words(n);
        for (i, &[_, scales]) in (0..).zip(&self.weights) {
            let to = slot.1.slice(0..1, i * words..(i + 1) * words);
            let (at, hint) = ([panel_index, tile.n * n], self.weight_hint());
            self.spec.scale_boxes.load(slot, scales, to, at, hint);
        }
    }

    /// Returns the L2 cache hint of the weights, which are read once.
    fn weight_hint(&self) -> Option<CacheHint> {
        self.config.cache_hints.then_some(CacheHint::EvictFirst)
    }

    /// Loads A of a round.
    #[track_caller]
    fn load_tokens(&self, tile: TileCoord, round: Reg<u32>) {
        let (c, k_per_step) = (self.config, self.config.schedule.k_per_step());
        let AOperand::Wide(x) = self.a else {
            return;
        };
        for (i, rings) in (0..).zip(&self.rings) {
            for step in 0..PANEL_K / k_per_step {
                let k = self.panel_index(round, i) * PANEL_K + step * k_per_step;
                let slot = rings.x.acquire();
                for first in (0..k_per_step).step_by(K_BLOCK as usize) {
                    let to = slot.tiles().slice(0..c.tile_m, first..first + K_BLOCK);
                    slot.load(x, to, [k + first, tile.m * c.tile_m]);
                }
                slot.commit();
            }
        }
    }
}
