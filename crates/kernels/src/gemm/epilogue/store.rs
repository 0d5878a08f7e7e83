//! The epilogue store: tiles go through staging buffers in shared memory to C.

use super::{BiasValues, Epilogue, Out, Run};
use crate::gemm::config::Staging;
use crate::gemm::offset::Offset;
use warpline_ir::build::*;

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

    /// The same, without what reductions do before and after.
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
}
