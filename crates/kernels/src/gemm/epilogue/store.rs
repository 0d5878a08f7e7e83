//! The epilogue store: tiles go through staging buffers in shared memory to C.

use super::{BiasValues, Epilogue, Out, Run};
use crate::gemm::config::{Config, Staging};
use crate::gemm::offset::Offset;
use crate::gemm::problem::Class;
use std::ops::Range as Span;
use warpline_ir::DType;
use warpline_ir::build::*;

/// Is C stored element by element?
pub(in crate::gemm) fn is_by_elements(class: &Class, c: &Config) -> bool {
    c.swap_ab() && class.out.dtype() == DType::F32
}

impl<T: Out> Epilogue<T> {
    /// Declares the staging tiles of a consumer.
    pub(in crate::gemm) fn outbox(&self, k: Builder, name: &str) -> Outbox<T> {
        let (c, Staging { width, stages }) = (&self.config, self.config.staging);
        match c.swap_ab() {
            false => k.outbox(name, stages, c.rows(), width),
            true => k.outbox(name, stages, c.tile_m, c.rows()),
        }
    }

    /// Prefetches the map of C for the first store; those of A and B come with the first load.
    #[track_caller]
    pub(in crate::gemm) fn prefetch_map(&self) {
        self.c.prefetch();
    }

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

    /// Applies the ops to a tile and stores it, part by part.
    #[track_caller]
    pub(in crate::gemm) fn store(
        &self,
        acc: &Frag,
        outbox: Outbox<T>,
        at: Offset,
        run: &Run,
        bias: BiasValues<T>,
    ) {
        let reductions = || self.reductions().zip(&run.carried);
        reductions().for_each(|(reduce, carried)| reduce.begin_tile(carried));
        self.store_tile(acc, outbox, at, run, bias);
        reductions().for_each(|(reduce, carried)| reduce.end_tile(at, carried));
    }

    #[track_caller]
    fn store_tile(
        &self,
        acc: &Frag,
        outbox: Outbox<T>,
        at: Offset,
        run: &Run,
        bias: BiasValues<T>,
    ) {
        if self.config.swap_ab() {
            let tile = self.apply(&self.split(acc), at, run, bias);
            T::store_transposed(self, outbox, &tile, at);
            return;
        }
        self.each_part(&self.split(acc), at, bias, |part, at, bias| {
            self.store_part(outbox, &part[0], at, |some, col| {
                let cols = col..col + some.cols();
                let mut all = vec![some];
                all.extend(part[1..].iter().map(|more| more.slice(cols.clone())));
                self.apply(&all, at.plus(0, col), run, bias.slice(cols))
            });
        });
    }

    /// Stores a part of a tile; `f` maps it on the way.
    #[track_caller]
    pub(in crate::gemm) fn store_part(
        &self,
        outbox: Outbox<T>,
        part: &Frag,
        at: Offset,
        f: impl Fn(Frag, u32) -> Frag,
    ) {
        match at.batch {
            None => outbox.send_map(part, self.c, [at.col, at.row], f),
            Some(z) => outbox.send_map(part, self.c, [at.col, at.row, z], f),
        }
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
