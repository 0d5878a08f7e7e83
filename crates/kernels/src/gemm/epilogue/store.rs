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
        let accumulators = self.split(acc);
        match self.config.swap_ab() {
            true => self.store_swapped(&accumulators, outbox, offset, state, bias),
            false => self.each_part(&accumulators, offset, bias, |part, offset, bias| {
                self.store_mapped(&part, outbox, offset, state, bias);
            }),
        }
        reductions().for_each(|(reduce, reduction)| reduce.end_tile(offset, reduction));
    }

    /// Applies the ops to a part of a tile and stores it.
    #[track_caller]
    pub(super) fn store_mapped(
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
