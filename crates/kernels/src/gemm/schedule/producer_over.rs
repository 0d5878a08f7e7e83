//! The producer of schedules with their own order of k-tiles.

use super::prelude::*;
use super::{in_producer_threads, prefetch_map, producer_role};
use crate::gemm::mainloop::AbRing;
use crate::gemm::offset::Offset;

/// Declares the role. `body` gets a function that loads one k-tile.
pub(super) fn role<A: Element, B: Element, T: Out>(
    k: Builder,
    gemm: &GemmContext<T>,
    ab: AbRing<A, B>,
    body: impl FnOnce(&dyn Fn(Offset, Reg<u32>)),
) {
    producer_role(k, gemm).body(|| {
        in_producer_threads(gemm, || {
            prefetch_map(gemm);
            body(&|offset, k_tile| producer::load(gemm, ab, offset, k_tile));
        });
    });
}
