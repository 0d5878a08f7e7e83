//! The parts of a tile, each as wide as a copy to C.

use super::{BiasValues, Epilogue, Out};
use crate::gemm::offset::Offset;
use std::ops::Range as Span;
use warpline_ir::build::*;

impl<T: Out> Epilogue<T> {
    /// The accumulators of a tile: one, or those of gate and of up.
    #[track_caller]
    pub(in crate::gemm) fn split(&self, acc: &Frag) -> Vec<Frag> {
        let halves = match (self.class.factors(), self.config.swap_ab()) {
            (1, _) => return vec![acc.clone()],
            (_, false) => acc.split(self.config.tile_n),
            (_, true) => acc.split_rows(self.config.rows()),
        };
        vec![halves.0, halves.1]
    }

    /// Stores the tile of a slot, and releases the slot once it has been read.
    #[track_caller]
    pub(in crate::gemm) fn store_slot(&self, slot: Slot<Tile<T>, Reading>, at: Offset) {
        match at.batch {
            None => self.c.store(slot.tiles(), [at.col, at.row]),
            Some(z) => self.c.store(slot.tiles(), [at.col, at.row, z]),
        }
        bulk_commit();
        bulk_wait_read(0);
        slot.release();
    }

    /// Runs `f` for part after part of a tile, each as wide as a copy to C.
    ///
    /// A loop if each value takes many instructions: to fetch these again for every part takes
    /// longer than the loop.
    #[track_caller]
    pub(in crate::gemm) fn each_part(
        &self,
        accumulators: &[Frag],
        at: Offset,
        bias: BiasValues<T>,
        mut f: impl FnMut(Vec<Frag>, Offset, BiasValues<T>),
    ) {
        let width = self.config.staging.width;
        let parts = self.config.tile_n / width;
        let cut = |all: &[Frag], cols: Span<u32>| -> Vec<Frag> {
            all.iter().map(|x| x.slice(cols.clone())).collect()
        };
        // The next part's bias is loaded before this part is worked on.
        let next = |at: Offset| self.prefetch(at.plus(0, width));
        if !self.class.epilogue.activation.is_long() || parts == 1 || width < 32 {
            let mut bias = bias;
            for i in 0..parts {
                let (at, cols) = (at.plus(0, i * width), i * width..(i + 1) * width);
                let more = match i + 1 < parts {
                    true => next(at),
                    false => BiasValues::None,
                };
                f(
                    cut(accumulators, cols),
                    at,
                    std::mem::replace(&mut bias, more),
                );
            }
            return;
        }
        let first = (accumulators.to_vec(), bias.pairs());
        steps(parts).unroll(1).fold(first, |i, (all, bias)| {
            let col = at.col + i * width;
            let at = Offset { col, ..at };
            let more = next(at);
            f(cut(&all, 0..width), at, BiasValues::of(bias));
            let rest = all.iter().map(|x| x.shift(width)).collect::<Vec<Frag>>();
            (rest, more.pairs())
        });
    }
}
