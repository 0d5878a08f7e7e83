//! The producer of schedules with their own order of k-tiles.

use super::copy_role;
use super::prelude::*;
use crate::gemm::mainloop::AbRing;
use crate::gemm::offset::Offset;

/// Declares the role. `body` gets a function that loads one k-tile.
pub(super) fn role<A: Element, B: Element, T: Out>(
    k: Builder,
    gemm: &GemmContext<T>,
    ab: AbRing<A, B>,
    body: impl FnOnce(&dyn Fn(Offset, Reg<u32>)),
) {
    copy_role(k, "load", &gemm.config).body(|| {
        elect(|| {
            gemm.epilogue.prefetch_map();
            body(&|offset, k_tile| producer::load(gemm, ab, offset, k_tile));
        });
    });
}
