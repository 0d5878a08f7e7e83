//! Swap-AB: B is the left operand, so that its rows fill the 64 rows of a wgmma when M is small.

use std::ops::Range as Span;
use warpline_ir::Element;
use warpline_ir::builder::*;

/// Multiplies rows of B by A; K is innermost in B.
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

/// Multiplies columns of B by A; N is innermost in B.
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
