//! Swap-AB: the tensor cores multiply B by A, so that the rows of B fill the 64 rows of a
//! product, where A has few.

use std::ops::Range as Span;
use warpline_ir::Element;
use warpline_ir::build::*;

/// Multiplies rows of a B with K innermost by A.
#[track_caller]
pub(super) fn k_major<A: Element, B: Element>(
    acc: &Acc,
    a: TileRef<A>,
    b: TileRef<B>,
    rows: Span<u32>,
    k: Span<u32>,
) {
    acc.mma(&b.slice(rows, k), &a);
}

/// Multiplies columns of a B with N innermost by A.
#[track_caller]
pub(super) fn n_major<A: Element, B: Element>(
    acc: &Acc,
    a: TileRef<A>,
    b: TileRef<B>,
    rows: Span<u32>,
    k: Span<u32>,
) {
    acc.mma(&b.slice(k, rows).t(), &a);
}
