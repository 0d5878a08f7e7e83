//! The role that loads codes and scales of the weights, and A.

use super::context::{Coded, Context, Tokens};
use super::decode::Decoded;
use super::units::{BLOCK, BLOCKS, PANEL, WIDTH};
use crate::gemm::tile_scheduler::TileCoord;
use crate::roles;
use warpline_ir::build::*;
use warpline_ir::ops::policy::CacheHint;

/// Declares it. Weights go ahead of A, which the step before makes.
pub(super) fn role<T: Decoded>(k: Builder, context: &Context<'_, T>) {
    let (lead, settled) = (context.config.lead(), context.spec.is_settled);
    let load = || {
        context
            .weights
            .as_flattened()
            .iter()
            .for_each(|map| map.prefetch());
        if let Tokens::Numbers(x) = context.tokens {
            x.prefetch();
        }
        context.out.prefetch();
        if !settled {
            wait_prerequisites();
        }
        context.each(|tile| {
            steps(lead).each(|i| context.load_weights(tile, i));
            if settled {
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
    roles::helper(k, "load", registers).body(|| elect(load));
}

impl<T: Decoded> Context<'_, T> {
    /// The number of a feed's slot of a round.
    #[track_caller]
    fn number(&self, round: Reg<u32>, feed: u32) -> Reg<u32> {
        self.first() + round * self.feeds.len() as u32 + feed
    }

    /// Loads a round's weights. Behind K come zeros.
    #[track_caller]
    fn load_weights(&self, tile: TileCoord, round: Reg<u32>) {
        for (i, feed) in (0..).zip(&self.feeds) {
            let slot = feed.weights.acquire();
            self.fill_codes(&slot, 0, tile, self.number(round, i));
            self.fill_scales(&slot, tile, self.number(round, i));
            slot.commit();
        }
    }

    /// Fills a slot, from a row on, with the weights' codes of a place along K.
    #[track_caller]
    pub(super) fn fill_codes(
        &self,
        slot: &Slot<Coded, Filling>,
        row: u32,
        tile: TileCoord,
        number: Reg<u32>,
    ) {
        let n = self.config.schedule.tile_n();
        for (i, [codes, _]) in (0..).zip(self.weights) {
            let row = row + i * n;
            let to = slot.0.slice(row..row + n, 0..PANEL);
            slot.load_with(codes, to, [number * PANEL, tile.n * n], None, self.forget());
        }
    }

    /// Fills the first words of a slot's scales with the weights' from a place
    /// along K on.
    #[track_caller]
    pub(super) fn fill_scales(
        &self,
        slot: &Slot<Coded, Filling>,
        tile: TileCoord,
        number: Reg<u32>,
    ) {
        let n = self.config.schedule.tile_n();
        let words = self.config.schedule.slot_words(n);
        for (i, [_, scales]) in (0..).zip(self.weights) {
            let to = slot.1.slice(0..1, i * words..(i + 1) * words);
            let at = [0u32.reg(), number * BLOCKS, (tile.n * n) >> 7u32];
            slot.load_with(scales, to, at, None, self.forget());
        }
    }

    /// Weights are read once.
    fn forget(&self) -> Option<CacheHint> {
        self.config.hints.then_some(CacheHint::EvictFirst)
    }

    /// Loads a round of A.
    #[track_caller]
    fn load_tokens(&self, tile: TileCoord, round: Reg<u32>) {
        let (c, depth) = (self.config, self.config.schedule.depth());
        let Tokens::Numbers(x) = self.tokens else {
            return;
        };
        for (i, feed) in (0..).zip(&self.feeds) {
            for step in 0..WIDTH / depth {
                let k = self.number(round, i) * WIDTH + step * depth;
                let slot = feed.x.acquire();
                for first in (0..depth).step_by(BLOCK as usize) {
                    let to = slot.tiles().slice(0..c.tile_m, first..first + BLOCK);
                    slot.load(x, to, [k + first, tile.m * c.tile_m]);
                }
                slot.commit();
            }
        }
    }
}
