//! Iteration over the parts of a tile, each as wide as one staging tile.

use super::{BiasValues, Epilogue, EpilogueState, Out};
use crate::gemm::offset::Offset;
use std::ops::Range as Span;
use warpline_ir::builder::*;

impl<T: Out> Epilogue<T> {
    /// Returns the accumulator of a tile, split into gate and up for a gated GEMM.
    #[track_caller]
    pub(in crate::gemm) fn split(&self, acc: &Frag) -> Vec<Frag> {
        let halves = match (self.class.b_operands(), self.config.swap_ab()) {
            (1, _) => return vec![acc.clone()],
            (_, false) => acc.split_cols(self.config.tile_n),
            (_, true) => acc.split_rows(self.config.rows()),
        };
        vec![halves.0, halves.1]
    }

    /// Stores every `step`-th part of a tile from part `first` on. `values` returns the accumulators of the
    /// columns from its first argument on; its second argument is their number.
    #[track_caller]
    pub(in crate::gemm) fn store_every(
        &self,
        first: Reg<u32>,
        step: Reg<u32>,
        values: impl Fn(Reg<u32>, u32) -> Frag,
        outbox: Option<Outbox<T>>,
        offset: Offset,
        state: &EpilogueState,
    ) {
        let (width, cols) = (self.config.staging.width, self.config.mma_tile()[1]);
        let is_gated = self.class.b_operands() == 2;
        range(first, cols / width).step_by(step).each(|part| {
            let col = part * width;
            let accumulators = match is_gated && !self.config.swap_ab() {
                // Gate and up are side by side.
                true => vec![values(col, width), values(col + cols, width)],
                false => self.split(&values(col, width)),
            };
            let offset = Offset {
                col: offset.col + col,
                ..offset
            };
            let bias = self.prefetch(offset);
            if self.config.swap_ab() {
                let tile = self.apply(&accumulators, offset, state, bias);
                return self.store_transposed(outbox, &tile, offset);
            }
            self.store_mapped(&accumulators, outbox, offset, state, bias);
        });
    }

    /// Stores the tile of a slot, and releases the slot once the store has read it.
    #[track_caller]
    pub(in crate::gemm) fn store_slot(&self, slot: Slot<Tile<T>, Consuming>, offset: Offset) {
        match (self.c, offset.batch) {
            (None, _) => {}
            (Some(c), None) => c.store(slot.tiles(), [offset.col, offset.row]),
            (Some(c), Some(z)) => c.store(slot.tiles(), [offset.col, offset.row, z]),
        }
        bulk_commit();
        bulk_wait_read(0);
        slot.release();
    }

    /// Runs `f` for each part of a tile.
    ///
    /// Expensive activations use a device loop: unrolled code would miss the instruction cache for
    /// every part, which costs more than the loop.
    #[track_caller]
    pub(in crate::gemm) fn each_part(
        &self,
        accumulators: &[Frag],
        offset: Offset,
        bias: BiasValues<T>,
        mut f: impl FnMut(Vec<Frag>, Offset, BiasValues<T>),
    ) {
        let width = self.config.staging.width;
        let parts = self.config.tile_n / width;
        let slice = |all: &[Frag], cols: Span<u32>| -> Vec<Frag> {
            all.iter().map(|x| x.slice(cols.clone())).collect()
        };
        // The bias of the next part is loaded before the current part is processed.
        let load_next = |offset: Offset| self.prefetch(offset.plus(0, width));
        if !self.class.epilogue.activation.is_expensive() || parts == 1 || width < 32 {
            let mut bias = bias;
            for i in 0..parts {
                let (offset, cols) = (offset.plus(0, i * width), i * width..(i + 1) * width);
                let next_bias = match i + 1 < parts {
                    true => load_next(offset),
                    false => BiasValues::None,
                };
                f(
                    slice(accumulators, cols),
                    offset,
                    std::mem::replace(&mut bias, next_bias),
                );
            }
            return;
        }
        let first = (accumulators.to_vec(), bias.pairs());
        steps(parts).unroll(1).fold(first, |i, (all, bias)| {
            let col = offset.col + i * width;
            let offset = Offset { col, ..offset };
            let next_bias = load_next(offset);
            f(slice(&all, 0..width), offset, BiasValues::from_pairs(bias));
            let shifted = all
                .iter()
                .map(|x| x.shift_cols(width))
                .collect::<Vec<Frag>>();
            (shifted, next_bias.pairs())
        });
    }
}
