//! The role that brings codes and scales of the weights, and A.

use super::decode::Decoded;
use super::line::{BLOCK, BLOCKS, Coded, Line, PANEL, Tokens, WIDTH, depth, scale_words};
use crate::gemm::forms;
use crate::gemm::walk::Seat;
use warpline_ir::build::*;
use warpline_ir::ops::policy::CacheHint;

/// Declares it. Weights go ahead of A, which the step before makes.
pub(super) fn role<T: Decoded>(k: Builder, line: &Line<'_, T>) {
    let (lead, settled) = (line.course.lead, line.course.settled);
    let load = || {
        line.prefetch();
        if !settled {
            wait_prerequisites();
        }
        line.each(|seat| {
            steps(lead).each(|i| line.load_weights(seat, i));
            if settled {
                wait_prerequisites();
            }
            steps(line.rounds - lead).each(|i| {
                line.load_tokens(seat, i);
                line.load_weights(seat, i + lead);
            });
            let last = line.rounds - lead;
            steps(lead).each(|i| line.load_tokens(seat, last + i));
        });
    };
    forms::helper(k, "load", line.config).body(|| elect(load));
}

impl<T: Decoded> Line<'_, T> {
    /// Fetches the maps.
    #[track_caller]
    pub(super) fn prefetch(&self) {
        let maps = self.weights.as_flattened().iter();
        let tokens = match &self.tokens {
            Tokens::Numbers(map) => std::slice::from_ref(map),
            Tokens::Coded(maps) => &maps[..],
        };
        for map in maps.chain(tokens).chain([&self.out]) {
            map.prefetch();
        }
    }

    /// The number of a feed's slot of a round.
    #[track_caller]
    fn number(&self, round: Reg<u32>, feed: u32) -> Reg<u32> {
        self.first() + round * self.feeds.len() as u32 + feed
    }

    /// Brings a round's weights. Behind K come zeros.
    #[track_caller]
    fn load_weights(&self, seat: Seat, round: Reg<u32>) {
        for (i, feed) in (0..).zip(&self.feeds) {
            let slot = feed.weights.acquire();
            self.fill_weights(&slot, [0, 0], seat, self.number(round, i));
            slot.commit();
        }
    }

    /// Fills a slot, from a row and a word of scales on, with the weights of a
    /// place along K.
    #[track_caller]
    pub(super) fn fill_weights(
        &self,
        slot: &Slot<Coded, Filling>,
        [row, word]: [u32; 2],
        seat: Seat,
        number: Reg<u32>,
    ) {
        let c = self.config;
        let first = seat.n * c.tile_n;
        let forget = c.hints.then_some(CacheHint::EvictFirst);
        for (i, maps) in (0..).zip(self.weights) {
            let to = [row + i * c.tile_n, word + i * scale_words(c.tile_n)];
            self.fill(slot, to, maps, c.tile_n, [first, number], forget);
        }
    }

    /// Fills rows of a slot, and scales from a word on, with codes and scales of
    /// rows of a tensor and a place along K.
    #[track_caller]
    pub(super) fn fill(
        &self,
        slot: &Slot<Coded, Filling>,
        [row, word]: [u32; 2],
        [codes, scales]: [Map; 2],
        rows: u32,
        [first, number]: [Reg<u32>; 2],
        hint: Option<CacheHint>,
    ) {
        let to = slot.0.slice(row..row + rows, 0..PANEL);
        slot.load_with(codes, to, [number * PANEL, first], None, hint);
        let to = slot.1.slice(0..1, word..word + scale_words(rows));
        let at = [0u32.reg(), number * BLOCKS, first >> 7u32];
        slot.load_with(scales, to, at, None, hint);
    }

    /// Brings a round of A.
    #[track_caller]
    fn load_tokens(&self, seat: Seat, round: Reg<u32>) {
        let c = self.config;
        let Tokens::Numbers(x) = self.tokens else {
            return;
        };
        for (i, feed) in (0..).zip(&self.feeds) {
            for step in 0..WIDTH / depth(c) {
                let k = self.number(round, i) * WIDTH + step * depth(c);
                let slot = feed.x.acquire();
                for first in (0..depth(c)).step_by(BLOCK as usize) {
                    let to = slot.tiles().slice(0..c.tile_m, first..first + BLOCK);
                    slot.load(x, to, [k + first, seat.m * c.tile_m]);
                }
                slot.commit();
            }
        }
    }
}
