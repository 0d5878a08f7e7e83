//! The element types of C.

use super::Epilogue;
use crate::gemm::offset::Offset;
use half::{bf16, f16};
use warpline_ir::builder::*;
use warpline_ir::{Bf16x2, F16x2};

/// An element type of C.
pub(in crate::gemm) trait Out: OutboxElement {
    /// Two consecutive elements in as few registers as possible.
    type Pair: Copy + Carry;
    /// Loads an element and the next one.
    fn load_pair(from: Global<Self>, first: Reg<u32>) -> Self::Pair;
    /// Widens a pair to f32.
    fn widen_pair(pair: Self::Pair) -> [Reg<f32>; 2];
    /// Widens an element to f32.
    fn widen(x: Reg<Self::Reg>) -> Reg<f32>;
    /// Stores a tile whose rows are columns of C (swap-AB).
    fn store_transposed(e: &Epilogue<Self>, outbox: Outbox<Self>, tile: &Frag, offset: Offset);
}

macro_rules! half_out {
    ($($t:ty, $pair:ty;)*) => {$(
        impl Out for $t {
            type Pair = Reg<$pair>;
            #[track_caller]
            fn load_pair(from: Global<$t>, first: Reg<u32>) -> Reg<$pair> {
                let [pair] = from.load_as(first);
                pair
            }
            #[track_caller]
            fn widen_pair(pair: Reg<$pair>) -> [Reg<f32>; 2] {
                pair.widen()
            }
            #[track_caller]
            fn widen(x: Reg<$t>) -> Reg<f32> {
                x.cast()
            }
            #[track_caller]
            fn store_transposed(e: &Epilogue<$t>, outbox: Outbox<$t>, tile: &Frag, offset: Offset) {
                match offset.batch {
                    None => outbox.store_transposed(tile, e.c, [offset.row, offset.col]),
                    Some(z) => outbox.store_transposed(tile, e.c, [offset.row, offset.col, z]),
                }
            }
        }
    )*};
}
half_out! {
    bf16, Bf16x2;
    f16, F16x2;
}

impl Out for f32 {
    type Pair = [Reg<f32>; 2];
    #[track_caller]
    fn load_pair(from: Global<f32>, first: Reg<u32>) -> [Reg<f32>; 2] {
        from.load_vec(first)
    }
    fn widen_pair(pair: [Reg<f32>; 2]) -> [Reg<f32>; 2] {
        pair
    }
    fn widen(x: Reg<f32>) -> Reg<f32> {
        x
    }
    /// Stores element by element: `stmatrix` transposes 16-bit elements only.
    #[track_caller]
    fn store_transposed(e: &Epilogue<f32>, _: Outbox<f32>, tile: &Frag, offset: Offset) {
        let Some(c) = e.elements else { return };
        tile.each_pair(|cell, pair| {
            let n = offset.row + cell.row;
            for (i, x) in (0..).zip(pair) {
                let m = offset.col + cell.col + i;
                if_(n.lt(e.n) & m.lt(e.m), || {
                    c.row(m, offset.batch).store(n, x);
                });
            }
        });
    }
}
