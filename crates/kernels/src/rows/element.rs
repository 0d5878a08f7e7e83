//! Element types of rows: conversion between memory words and fp32 registers.

use half::{bf16, f16};
use warpline_ir::builder::*;
use warpline_ir::{Bf16x2, Element, F16x2, Scalar};

/// Bytes of one vector access.
pub(super) const VECTOR_BYTES: u32 = 16;

/// An element type, and the 32-bit register type of its vectors.
pub(super) trait RowElement: Element {
    /// A 32-bit register with as many elements as fit.
    type Word: Scalar;
    /// Converts a vector to fp32.
    fn widen(words: [Reg<Self::Word>; 4]) -> Vec<Reg<f32>>;
    /// Rounds fp32 values to a vector.
    fn narrow(values: &[Reg<f32>]) -> [Reg<Self::Word>; 4];
    /// Converts one element to fp32.
    fn widen_one(x: Reg<Self::Reg>) -> Reg<f32>;
    /// Rounds one value.
    fn narrow_one(x: Reg<f32>) -> Reg<Self::Reg>;
}

impl RowElement for f32 {
    type Word = f32;
    fn widen(words: [Reg<f32>; 4]) -> Vec<Reg<f32>> {
        words.to_vec()
    }
    fn narrow(values: &[Reg<f32>]) -> [Reg<f32>; 4] {
        std::array::from_fn(|i| values[i])
    }
    fn widen_one(x: Reg<f32>) -> Reg<f32> {
        x
    }
    fn narrow_one(x: Reg<f32>) -> Reg<f32> {
        x
    }
}

macro_rules! halves {
    ($($e:ty, $word:ty;)*) => {$(
        impl RowElement for $e {
            type Word = $word;
            #[track_caller]
            fn widen(words: [Reg<$word>; 4]) -> Vec<Reg<f32>> {
                words.into_iter().flat_map(Reg::<$word>::widen).collect()
            }
            #[track_caller]
            fn narrow(values: &[Reg<f32>]) -> [Reg<$word>; 4] {
                std::array::from_fn(|i| Reg::<$word>::round(values[2 * i], values[2 * i + 1]))
            }
            #[track_caller]
            fn widen_one(x: Reg<$e>) -> Reg<f32> {
                x.cast()
            }
            #[track_caller]
            fn narrow_one(x: Reg<f32>) -> Reg<$e> {
                x.cast()
            }
        }
    )*};
}
halves! {
    f16, F16x2;
    bf16, Bf16x2;
}
