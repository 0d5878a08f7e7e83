//! Registers that hold several numbers: pairs, and four 8-bit floats.
//!
//! | | made of | by |
//! |---|---|---|
//! | `F16x2`, `Bf16x2`, `E4m3x2`, `E5m2x2` | two `f32` | [`Reg::round`], back by [`Reg::widen`] |
//! | `E4m3x4`, `E5m2x4` | four `f32`, two `F16x2` | [`Reg::round4`], [`Reg::round_f16`], back by [`Reg::widen4`], [`Reg::widen_f16`] |
//! | `F16x2`, `Bf16x2`, `E4m3x4`, `E5m2x4`, `u32`, `u64` | two halves | [`Reg::pack`], back by [`Reg::halves`] |
//!
//! Rounding is to nearest even; an 8-bit float that would be too large becomes
//! the largest number. Widening is exact. `cast` takes a pair of 8-bit floats
//! to `F16x2` and back.

use super::reg::{Reg, Value};
use super::state::{emit, here};
use crate::ops::convert::{Pack, Unpack};
use crate::types::{Bf16x2, E4m3x2, E4m3x4, E5m2x2, E5m2x4, F16x2, Scalar, Type};
use crate::value::Operand;
use half::{bf16, f16};

/// Two floats narrower than `f32`, rounded into one register.
pub trait Rounded: Scalar {}
impl Rounded for F16x2 {}
impl Rounded for Bf16x2 {}
impl Rounded for E4m3x2 {}
impl Rounded for E5m2x2 {}

/// A register made of two narrower ones.
pub trait Packed: Scalar {
    /// Each half.
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

impl<T: Rounded> Reg<T> {
    /// Rounds two `f32` and packs them.
    #[track_caller]
    pub fn round(lo: impl Value<f32>, hi: impl Value<f32>) -> Self {
        pack(Type::F32, false, lo.operand(), hi.operand())
    }

    /// The same with zero for what is negative (`.relu`).
    #[track_caller]
    pub fn round_relu(lo: impl Value<f32>, hi: impl Value<f32>) -> Self {
        pack(Type::F32, true, lo.operand(), hi.operand())
    }

    /// The two numbers as `f32`, low first; exact.
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

    /// The two halves, low first.
    #[track_caller]
    pub fn halves(self) -> [Reg<T::Half>; 2] {
        unpack(self)
    }
}

/// Four numbers: two halves that are pairs.
impl<T: Packed<Half: Rounded>> Reg<T> {
    /// Rounds four `f32` and packs them, the first in the low byte.
    #[track_caller]
    pub fn round4([a, b, c, d]: [impl Value<f32>; 4]) -> Self {
        let _at = here();
        let [lo, hi] = [[a, b], [c, d]].map(|[lo, hi]| Reg::<T::Half>::round(lo, hi));
        Self::pack(lo, hi)
    }

    /// The same with zero for what is negative (`.relu`).
    #[track_caller]
    pub fn round4_relu([a, b, c, d]: [impl Value<f32>; 4]) -> Self {
        let _at = here();
        let [lo, hi] = [[a, b], [c, d]].map(|[lo, hi]| Reg::<T::Half>::round_relu(lo, hi));
        Self::pack(lo, hi)
    }

    /// Rounds two pairs of `f16` and packs them.
    #[track_caller]
    pub fn round_f16([lo, hi]: [impl Value<F16x2>; 2]) -> Self {
        let _at = here();
        Self::pack(lo.reg().cast::<T::Half>(), hi.reg().cast::<T::Half>())
    }

    /// The four numbers as `f32`, low first; exact.
    #[track_caller]
    pub fn widen4(self) -> [Reg<f32>; 4] {
        let _at = here();
        let [[a, b], [c, d]] = self.halves().map(Reg::widen);
        [a, b, c, d]
    }

    /// The four numbers as two pairs of `f16`, low first; exact.
    #[track_caller]
    pub fn widen_f16(self) -> [Reg<F16x2>; 2] {
        let _at = here();
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
