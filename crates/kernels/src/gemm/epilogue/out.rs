//! The element types of C.

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
    /// Loads two elements that are not aligned to a pair, or not neighbors.
    fn load_elements(from: Global<Self>, at: [Reg<u32>; 2]) -> Self::Pair;
    /// Rounds to the element type.
    fn round(x: Reg<f32>) -> Reg<Self::Reg>;
    /// Stores a transposed tile by TMA; only 16-bit types support this.
    fn store_transposed<const R: usize>(
        outbox: Outbox<Self>,
        tile: &Frag,
        map: TensorMap,
        coords: [Reg<u32>; R],
    ) where
        [Reg<u32>; R]: Coords<R>;
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
            fn load_elements(from: Global<$t>, at: [Reg<u32>; 2]) -> Reg<$pair> {
                let [lo, hi] = at.map(|i| from.load(i));
                Reg::pack(lo, hi)
            }
            #[track_caller]
            fn round(x: Reg<f32>) -> Reg<$t> {
                x.cast()
            }
            #[track_caller]
            fn store_transposed<const R: usize>(
                outbox: Outbox<$t>,
                tile: &Frag,
                map: TensorMap,
                coords: [Reg<u32>; R],
            ) where
                [Reg<u32>; R]: Coords<R>,
            {
                outbox.store_transposed(tile, map, coords);
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
    #[track_caller]
    fn load_elements(from: Global<f32>, at: [Reg<u32>; 2]) -> [Reg<f32>; 2] {
        at.map(|i| from.load(i))
    }
    fn round(x: Reg<f32>) -> Reg<f32> {
        x
    }
    fn store_transposed<const R: usize>(_: Outbox<f32>, _: &Frag, _: TensorMap, _: [Reg<u32>; R])
    where
        [Reg<u32>; R]: Coords<R>,
    {
    }
}
