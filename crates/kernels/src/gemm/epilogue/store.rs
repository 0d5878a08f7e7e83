//! The epilogue store: from registers through staging tiles in shared memory to C, or element by element
//! if TMA cannot address C.

use super::{BiasValues, Epilogue, EpilogueState, Out};
use crate::gemm::config::Staging;
use crate::gemm::offset::Offset;
use warpline_ir::builder::*;

impl<T: Out> Epilogue<T> {
    /// Declares the staging tiles of a consumer; `None` if C is stored element by element.
    pub(in crate::gemm) fn outbox(&self, k: Builder, name: &str) -> Option<Outbox<T>> {
        let (c, Staging { width, stages }) = (&self.config, self.config.staging);
        self.c.map(|_| match c.swap_ab() {
            false => k.outbox(name, stages, c.rows(), width),
            true => k.outbox(name, stages, width, c.rows()),
        })
    }

    /// Prefetches the tensor map of C; the first load fetches those of A and B.
    #[track_caller]
    pub(in crate::gemm) fn prefetch_map(&self) {
        if let Some(c) = self.c {
            c.prefetch();
        }
    }

    /// Applies the ops to a tile and stores it, part by part.
    #[track_caller]
    pub(in crate::gemm) fn store(
        &self,
        acc: &Frag,
        outbox: Option<Outbox<T>>,
        offset: Offset,
        state: &EpilogueState,
        bias: BiasValues<T>,
    ) {
        let reductions = || self.reductions().zip(&state.reductions);
        reductions().for_each(|(reduce, reduction)| reduce.begin_tile(reduction));
        self.store_tile(acc, outbox, offset, state, bias);
        reductions().for_each(|(reduce, reduction)| reduce.end_tile(offset, reduction));
    }

    /// Applies the ops to a tile and stores it, without the start and end of reductions.
    #[track_caller]
    fn store_tile(
        &self,
        acc: &Frag,
        outbox: Option<Outbox<T>>,
        offset: Offset,
        state: &EpilogueState,
        bias: BiasValues<T>,
    ) {
        if self.config.swap_ab() {
            self.store_swapped(&self.split(acc), outbox, offset, state, bias);
            return;
        }
        self.each_part(&self.split(acc), offset, bias, |part, offset, bias| {
            self.store_mapped(&part, outbox, offset, state, bias);
        });
    }

    /// Applies the ops to a part of a tile and stores it.
    #[track_caller]
    fn store_mapped(
        &self,
        part: &[Frag],
        outbox: Option<Outbox<T>>,
        offset: Offset,
        state: &EpilogueState,
        bias: BiasValues<T>,
    ) {
        self.store_part(outbox, &part[0], offset, |frag, col| {
            let cols = col..col + frag.cols();
            let mut all = vec![frag];
            all.extend(part[1..].iter().map(|other| other.slice(cols.clone())));
            self.apply(&all, offset.plus(0, col), state, bias.slice(cols))
        });
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

    /// Applies the ops to a tile whose columns are rows of C (swap-AB) and stores it, part by part.
    #[track_caller]
    fn store_swapped(
        &self,
        accumulators: &[Frag],
        outbox: Option<Outbox<T>>,
        offset: Offset,
        state: &EpilogueState,
        bias: BiasValues<T>,
    ) {
        let width = self.config.staging.width;
        for col in (0..self.config.tile_m).step_by(width as usize) {
            let cols = col..col + width;
            let slices = accumulators.iter().map(|x| x.slice(cols.clone()));
            let slices: Vec<Frag> = slices.collect();
            let offset = offset.plus(0, col);
            let tile = self.apply(&slices, offset, state, bias.slice(cols));
            self.store_transposed(outbox, &tile, offset);
        }
    }

    /// Stores a part of a tile after mapping it with `f`.
    #[track_caller]
    pub(in crate::gemm) fn store_part(
        &self,
        outbox: Option<Outbox<T>>,
        part: &Frag,
        offset: Offset,
        f: impl Fn(Frag, u32) -> Frag,
    ) {
        let Some((outbox, c)) = outbox.zip(self.c) else {
            // A few columns at a time keep few values live.
            let step = if part.cols().is_multiple_of(16) {
                16
            } else {
                8
            };
            for col in (0..part.cols()).step_by(step as usize) {
                let values = f(part.slice(col..col + step), col);
                self.store_elements(&values, offset.plus(0, col));
            }
            return;
        };
        match offset.batch {
            None => outbox.store_map(part, c, [offset.col, offset.row], f),
            Some(z) => outbox.store_map(part, c, [offset.col, offset.row, z], f),
        }
    }
}
