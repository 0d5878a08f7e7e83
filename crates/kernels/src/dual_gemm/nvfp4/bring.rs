//! The role that brings codes and scales of the weights, and A.

use super::decode::Decoded;
use super::line::{BLOCK, BLOCKS, Line, PANEL, WIDTH, depth};
use crate::gemm::forms;
use crate::gemm::walk::Seat;
use warpline_ir::build::*;
use warpline_ir::ops::policy::CacheHint;

/// Declares it. Weights go ahead of A, which the step before makes.
pub(super) fn role<T: Decoded>(k: Builder, line: &Line<'_, T>) {
    let (lead, settled) = (line.course.lead, line.course.settled);
    let load = || {
        let maps = line.weights.as_flattened().iter();
        for map in maps.chain([&line.x, &line.out]) {
            map.prefetch();
        }
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
    /// The number of a feed's slot of a round.
    #[track_caller]
    fn number(&self, round: Reg<u32>, feed: u32) -> Reg<u32> {
        self.first() + round * self.feeds.len() as u32 + feed
    }

    /// Brings a round's weights. Behind K come zeros.
    #[track_caller]
    fn load_weights(&self, seat: Seat, round: Reg<u32>) {
        let c = self.config;
        let output = seat.n * c.tile_n;
        let forget = c.hints.then_some(CacheHint::EvictFirst);
        let words = self.scale_words(c.tile_n);
        for (i, feed) in (0..).zip(&self.feeds) {
            let number = self.number(round, i);
            let slot = feed.weights.acquire();
            for (j, [codes, scales]) in (0..).zip(self.weights) {
                let rows = j * c.tile_n..(j + 1) * c.tile_n;
                let to = slot.0.slice(rows, 0..PANEL);
                slot.load_with(codes, to, [number * PANEL, output], None, forget);
                let to = slot.1.slice(0..1, j * words..(j + 1) * words);
                let at = [0u32.reg(), number * BLOCKS, output >> 7u32];
                slot.load_with(scales, to, at, None, forget);
            }
            slot.commit();
        }
    }

    /// Brings a round of A.
    #[track_caller]
    fn load_tokens(&self, seat: Seat, round: Reg<u32>) {
        let c = self.config;
        for (i, feed) in (0..).zip(&self.feeds) {
            for step in 0..WIDTH / depth(c) {
                let k = self.number(round, i) * WIDTH + step * depth(c);
                let slot = feed.x.acquire();
                for first in (0..depth(c)).step_by(BLOCK as usize) {
                    let to = slot.tiles().slice(0..c.tile_m, first..first + BLOCK);
                    slot.load(self.x, to, [k + first, seat.m * c.tile_m]);
                }
                slot.commit();
            }
        }
    }
}
