//! Packed registers: pairs of floats, and four 8-bit floats.
//!
//! | packed type | unpacked | conversions |
//! |---|---|---|
//! | `F16x2`, `Bf16x2`, `E4m3x2`, `E5m2x2` | two `f32` | [`Reg::round`], back by [`Reg::widen`] |
//! | `E4m3x4`, `E5m2x4` | four `f32`, two `F16x2` | [`Reg::round4`], [`Reg::round_f16`], back by [`Reg::widen4`], [`Reg::widen_f16`] |
//! | `F16x2`, `Bf16x2`, `E4m3x4`, `E5m2x4`, `u32`, `u64` | two halves | [`Reg::pack`], back by [`Reg::halves`] |
//!
//! Rounding is to nearest even; conversions to 8-bit floats saturate to the
//! largest finite value. Widening is exact. `cast` converts a pair of 8-bit
//! floats to `F16x2` and back.

use super::reg::{Reg, Value};
use super::state::{caller_scope, emit};
use crate::ops::convert::{Pack, Unpack};
use crate::types::{Bf16x2, E4m3x2, E4m3x4, E5m2x2, E5m2x4, F16x2, Scalar, Type};
use crate::value::Operand;
use half::{bf16, f16};

/// A register of two floats narrower than `f32`.
pub trait RoundedPair: Scalar {}
impl RoundedPair for F16x2 {}
impl RoundedPair for Bf16x2 {}
impl RoundedPair for E4m3x2 {}
impl RoundedPair for E5m2x2 {}

/// A register that consists of two narrower registers.
pub trait Packed: Scalar {
    /// The type of each half.
    type Half: Scalar;
}

macro_rules! packed {
    ($($t:ty: $half:ty),*) => {$(
        impl Packed for $t {
            type Half = $half;
        }
    )*};
}
packed!(F16x2: f16, Bf16x2: bf16, E4m3x4: E4m3x2, E5m2x4: E5m2x2, u32: u16, u64: u32);

impl<T: RoundedPair> Reg<T> {
    /// Rounds two `f32` and packs them.
    #[track_caller]
    pub fn round(lo: impl Value<f32>, hi: impl Value<f32>) -> Self {
        pack(Type::F32, false, lo.operand(), hi.operand())
    }

    /// Rounds and packs, with negative values clamped to zero (`.relu`).
    #[track_caller]
    pub fn round_relu(lo: impl Value<f32>, hi: impl Value<f32>) -> Self {
        pack(Type::F32, true, lo.operand(), hi.operand())
    }

    /// Returns both values as `f32`, the low one first; exact.
    #[track_caller]
    pub fn widen(self) -> [Reg<f32>; 2] {
        unpack(self)
    }
}

impl<T: Packed> Reg<T> {
    /// Packs two halves.
    #[track_caller]
    pub fn pack(lo: impl Value<T::Half>, hi: impl Value<T::Half>) -> Self {
        pack(T::Half::TYPE, false, lo.operand(), hi.operand())
    }

    /// Returns both halves, the low one first.
    #[track_caller]
    pub fn halves(self) -> [Reg<T::Half>; 2] {
        unpack(self)
    }
}

/// Registers of four floats: two halves that are pairs.
impl<T: Packed<Half: RoundedPair>> Reg<T> {
    /// Rounds four `f32` and packs them, the first in the low byte.
    #[track_caller]
    pub fn round4([a, b, c, d]: [impl Value<f32>; 4]) -> Self {
        let _caller = caller_scope();
        let [lo, hi] = [[a, b], [c, d]].map(|[lo, hi]| Reg::<T::Half>::round(lo, hi));
        Self::pack(lo, hi)
    }

    /// Rounds and packs, with negative values clamped to zero (`.relu`).
    #[track_caller]
    pub fn round4_relu([a, b, c, d]: [impl Value<f32>; 4]) -> Self {
        let _caller = caller_scope();
        let [lo, hi] = [[a, b], [c, d]].map(|[lo, hi]| Reg::<T::Half>::round_relu(lo, hi));
        Self::pack(lo, hi)
    }

    /// Rounds two pairs of `f16` and packs them.
    #[track_caller]
    pub fn round_f16([lo, hi]: [impl Value<F16x2>; 2]) -> Self {
        let _caller = caller_scope();
        Self::pack(lo.reg().cast::<T::Half>(), hi.reg().cast::<T::Half>())
    }

    /// Returns the four values as `f32`, the low one first; exact.
    #[track_caller]
    pub fn widen4(self) -> [Reg<f32>; 4] {
        let _caller = caller_scope();
        let [[a, b], [c, d]] = self.halves().map(Reg::widen);
        [a, b, c, d]
    }

    /// Returns the four values as two pairs of `f16`, the low pair first; exact.
    #[track_caller]
    pub fn widen_f16(self) -> [Reg<F16x2>; 2] {
        let _caller = caller_scope();
        self.halves().map(Reg::cast)
    }
}

#[track_caller]
fn pack<T: Scalar>(from: Type, relu: bool, lo: Operand, hi: Operand) -> Reg<T> {
    let dst = Reg::fresh();
    emit(Pack {
        from,
        to: T::TYPE,
        relu,
        dst: dst.id(),
        lo,
        hi,
    });
    dst
}

#[track_caller]
fn unpack<T: Scalar, H: Scalar>(src: Reg<T>) -> [Reg<H>; 2] {
    let (lo, hi) = (Reg::fresh(), Reg::fresh());
    emit(Unpack {
        from: T::TYPE,
        to: H::TYPE,
        lo: lo.id(),
        hi: hi.id(),
        src: src.operand(),
    });
    [lo, hi]
}
