//! The producer of schedules that visit k-tiles in their own way.

use super::helper;
use super::prelude::*;
use crate::gemm::mainloop::Stage;
use crate::gemm::offset::Offset;

/// Declares the role: `body` is given the
/// function that loads one.
pub(super) fn role<A: Element, B: Element, T: Out>(
    k: Builder,
    gemm: &GemmContext<T>,
    ab: Stage<A, B>,
    body: impl FnOnce(&dyn Fn(Offset, Reg<u32>)),
) {
    helper(k, "producer", &gemm.config).body(|| {
        elect(|| {
            gemm.epilogue.prefetch_map();
            body(&|at, k_tile| producer::load(gemm, ab, at, k_tile));
        });
    });
}
