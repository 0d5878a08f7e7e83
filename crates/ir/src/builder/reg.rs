//! Registers and variables, with arithmetic operators.

use super::state::{emit, error, fresh, with};
use crate::ops::arith::{
    Abs, Add, Div, Fma, Mad, MadWide, Max, Min, Mov, Mul, MulHi, MulWide, Neg, Opaque, Rem, Sub,
};
use crate::ops::bits::{And, Or, Xor};
use crate::ops::convert::{Bitcast, Cvt};
use crate::types::{Bf16x2, F16x2, Scalar, Tf32};
use crate::value::{Operand, RegId};
use half::{bf16, f16};
use std::marker::PhantomData;
use std::ops;

/// An immutable register of the kernel being built: one value in every lane.
///
/// Use a [`Var`] for a value that changes. Rust's `==` and `if` do not apply to registers:
/// compare with [`Reg::eq`] and branch with [`if_`](super::if_).
#[derive(Debug)]
pub struct Reg<T> {
    id: RegId,
    serial: u32,
    ty: PhantomData<fn() -> T>,
}

impl<T> Clone for Reg<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Reg<T> {}

/// A register or a constant of type `T`.
pub trait Value<T: Scalar>: Copy {
    /// Returns the operand of an op.
    fn operand(self) -> Operand;

    /// Returns the value in a register.
    #[track_caller]
    fn reg(self) -> Reg<T> {
        let dst = Reg::fresh();
        emit(Mov {
            ty: T::TYPE,
            dst: dst.id,
            src: self.operand(),
        });
        dst
    }
}

impl<T: Scalar> Value<T> for T {
    fn operand(self) -> Operand {
        Operand::imm(self)
    }
}

impl<T: Scalar> Value<T> for Reg<T> {
    #[track_caller]
    fn operand(self) -> Operand {
        if self.serial != with(|s| s.serial) {
            error(
                "register-of-another-kernel",
                "a register of another kernel is used",
            );
            return Operand::Imm(0);
        }
        Operand::Reg(self.id)
    }
    fn reg(self) -> Reg<T> {
        self
    }
}

/// A coordinate: a `u32` or `i32` register or constant.
pub trait Coord: Copy {
    /// Returns the operand of an op.
    fn coord(self) -> Operand;
}

macro_rules! coord {
    ($($t:ty),*) => {$(
        impl Coord for $t {
            #[track_caller]
            fn coord(self) -> Operand { Value::operand(self) }
        }
    )*};
}
coord!(u32, i32, Reg<u32>, Reg<i32>);

/// Coordinates of a box, innermost first: an array, or a tuple of registers and constants.
pub trait Coords<const R: usize>: Copy {
    /// Returns the operands of an op.
    fn coords(self) -> [Operand; R];
}

impl<C: Coord, const R: usize> Coords<R> for [C; R] {
    #[track_caller]
    fn coords(self) -> [Operand; R] {
        self.map(Coord::coord)
    }
}

macro_rules! coords {
    ($($n:literal: $($t:ident $i:tt),*;)*) => {$(
        impl<$($t: Coord),*> Coords<$n> for ($($t,)*) {
            #[track_caller]
            fn coords(self) -> [Operand; $n] { [$(self.$i.coord()),*] }
        }
    )*};
}
coords! {
    1: A 0;
    2: A 0, B 1;
    3: A 0, B 1, C 2;
    4: A 0, B 1, C 2, D 3;
    5: A 0, B 1, C 2, D 3, E 4;
}

impl<T: Scalar> Reg<T> {
    /// Creates an uninitialized register.
    #[track_caller]
    pub(crate) fn fresh() -> Self {
        Self::of(fresh(T::TYPE))
    }

    /// Returns the handle of a register of the open builder.
    pub(crate) fn of(id: RegId) -> Self {
        Self {
            id,
            serial: with(|s| s.serial),
            ty: PhantomData,
        }
    }

    /// Returns the register's id in the kernel.
    pub fn id(self) -> RegId {
        self.id
    }

    /// Reinterprets the bits as another type of the same size.
    #[track_caller]
    pub fn bitcast<U: Scalar>(self) -> Reg<U> {
        let dst = Reg::fresh();
        emit(Bitcast {
            from: T::TYPE,
            to: U::TYPE,
            dst: dst.id,
            src: self.operand(),
        });
        dst
    }

    /// Converts to the nearest value of another type (`cvt`).
    #[track_caller]
    pub fn cast<U: Scalar>(self) -> Reg<U> {
        if T::TYPE == U::TYPE {
            return Reg::of(self.id);
        }
        let dst = Reg::fresh();
        emit(Cvt {
            from: T::TYPE,
            to: U::TYPE,
            dst: dst.id,
            src: self.operand(),
        });
        dst
    }
}

/// A mutable variable, for values that change across iterations or branches.
#[derive(Debug)]
pub struct Var<T>(Reg<T>);

impl<T> Clone for Var<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Var<T> {}

impl<T: Scalar> Reg<T> {
    /// Returns a copy that the checker takes for any value, so that a proof does not depend on how it was
    /// computed.
    ///
    /// For values that many instructions compute, in one place, and that decide only how much work there is:
    /// without it, the checker would tell apart all cases of the computation.
    #[track_caller]
    pub fn opaque(self) -> Self {
        let dst = Reg::fresh();
        emit(Opaque {
            ty: T::TYPE,
            dst: dst.id,
            a: self.operand(),
        });
        dst
    }
}

impl<T: Scalar> Var<T> {
    /// Creates a variable with an initial value.
    #[track_caller]
    pub fn new(first: impl Value<T>) -> Self {
        let v = Self(Reg::fresh());
        v.set(first);
        v
    }

    /// Creates a variable that the role initializes once, at its start.
    #[track_caller]
    pub(crate) fn role_state(first: T) -> Self {
        let frame = crate::loc::Frame::caller();
        let src = Operand::Imm(first.to_bits());
        let ty = T::TYPE;
        let id = with(|s| Some(s.in_preamble(ty, frame, |dst| Mov { ty, dst, src }.into())));
        Self(Reg::of(id.unwrap_or(RegId(0))))
    }

    /// Returns the current value.
    #[track_caller]
    pub fn get(self) -> Reg<T> {
        let dst = Reg::fresh();
        emit(Mov {
            ty: T::TYPE,
            dst: dst.id,
            src: self.0.operand(),
        });
        dst
    }

    /// Sets a new value.
    #[track_caller]
    pub fn set(self, value: impl Value<T>) {
        emit(Mov {
            ty: T::TYPE,
            dst: self.0.id,
            src: value.operand(),
        });
    }
}

/// A type with addition, subtraction, multiplication, minimum and maximum.
pub trait Arith: Scalar {}
/// An integer register type.
pub trait Int: Arith {}
/// A floating-point register type.
pub trait Float: Arith {}
/// A type with bitwise operations.
pub trait Bits: Scalar {}
/// A type with ordered comparisons.
pub trait Compare: Scalar {}

macro_rules! marker {
    ($($tr:ident: $($t:ty),*;)*) => {$($(impl $tr for $t {})*)*};
}
marker! {
    Arith: u16, u32, i32, u64, i64, f32, f16, bf16, F16x2, Bf16x2;
    Int: u32, i32, u64, i64;
    Float: f32, f16, bf16, F16x2, Bf16x2;
    Bits: u16, u32, i32, u64, i64;
    Compare: u16, u32, i32, u64, i64, f32, f16, bf16;
}

macro_rules! binary_fn {
    ($($(#[$doc:meta])* $vis:vis fn $name:ident<$bound:ident> = $op:ident;)*) => {$(
        $(#[$doc])*
        #[track_caller]
        $vis fn $name<T: $bound>(a: impl Value<T>, b: impl Value<T>) -> Reg<T> {
            let dst = Reg::fresh();
            emit($op { ty: T::TYPE, dst: dst.id, a: a.operand(), b: b.operand() });
            dst
        }
    )*};
}
binary_fn! {
    fn add<Arith> = Add;
    fn sub<Arith> = Sub;
    fn mul<Arith> = Mul;
    fn div<Compare> = Div;
    fn rem<Int> = Rem;
    fn and<Bits> = And;
    fn or<Bits> = Or;
    fn xor<Bits> = Xor;
    pub(super) fn min<Arith> = Min;
    pub(super) fn max<Arith> = Max;
    fn mul_hi<Int> = MulHi;
}

macro_rules! operator {
    ($trait:ident, $method:ident, $f:ident: $($t:ty),*) => {$(
        impl ops::$trait for Reg<$t> {
            type Output = Reg<$t>;
            #[track_caller]
            fn $method(self, b: Reg<$t>) -> Reg<$t> { $f(self, b) }
        }
        impl ops::$trait<$t> for Reg<$t> {
            type Output = Reg<$t>;
            #[track_caller]
            fn $method(self, b: $t) -> Reg<$t> { $f(self, b) }
        }
        impl ops::$trait<Reg<$t>> for $t {
            type Output = Reg<$t>;
            #[track_caller]
            fn $method(self, b: Reg<$t>) -> Reg<$t> { $f(self, b) }
        }
    )*};
}
operator!(Add, add, add: u16, u32, i32, u64, i64, f32, f16, bf16, F16x2, Bf16x2);
operator!(Sub, sub, sub: u16, u32, i32, u64, i64, f32, f16, bf16, F16x2, Bf16x2);
operator!(Mul, mul, mul: u16, u32, i32, u64, i64, f32, f16, bf16, F16x2, Bf16x2);
operator!(Div, div, div: u32, i32, u64, i64, f32);
operator!(Rem, rem, rem: u32, i32, u64, i64);
operator!(BitAnd, bitand, and: u16, u32, i32, u64, i64);
operator!(BitOr, bitor, or: u16, u32, i32, u64, i64);
operator!(BitXor, bitxor, xor: u16, u32, i32, u64, i64);

macro_rules! signed {
    ($($t:ty),*) => {$(
        impl Reg<$t> {
            /// Returns the absolute value; the minimum integer stays unchanged.
            #[track_caller]
            pub fn abs(self) -> Reg<$t> {
                let dst = Reg::fresh();
                emit(Abs { ty: <$t>::TYPE, dst: dst.id, a: self.operand() });
                dst
            }
        }
        impl ops::Neg for Reg<$t> {
            type Output = Reg<$t>;
            #[track_caller]
            fn neg(self) -> Reg<$t> {
                let dst = Reg::fresh();
                emit(Neg { ty: <$t>::TYPE, dst: dst.id, a: self.operand() });
                dst
            }
        }
    )*};
}
signed!(i32, i64, f32, f16, bf16, F16x2, Bf16x2);

impl<T: Arith> Reg<T> {
    /// Returns the minimum.
    #[track_caller]
    pub fn min(self, b: impl Value<T>) -> Reg<T> {
        min(self, b)
    }

    /// Returns the maximum.
    #[track_caller]
    pub fn max(self, b: impl Value<T>) -> Reg<T> {
        max(self, b)
    }
}

impl<T: Int> Reg<T> {
    /// Computes `self · b + c` with wrap-around (`mad.lo`).
    #[track_caller]
    pub fn mad(self, b: impl Value<T>, c: impl Value<T>) -> Reg<T> {
        let dst = Reg::fresh();
        emit(Mad {
            ty: T::TYPE,
            dst: dst.id,
            a: self.operand(),
            b: b.operand(),
            c: c.operand(),
        });
        dst
    }

    /// Returns the high half of the product (`mul.hi`).
    #[track_caller]
    pub fn mul_hi(self, b: impl Value<T>) -> Reg<T> {
        mul_hi(self, b)
    }
}

impl Reg<u32> {
    /// Divides by a constant and rounds up.
    #[track_caller]
    pub fn div_ceil(self, b: u32) -> Reg<u32> {
        // (x - 1) / b + 1 does not overflow near 2^32; x == 0 stays 0.
        let one = self.min(1u32);
        let below = self - one;
        let quotient = match b.is_power_of_two() {
            true => below >> b.trailing_zeros(),
            false => below / b,
        };
        quotient + one
    }
}

macro_rules! wide {
    ($($t:ty => $wide:ty),*) => {$(
        impl Reg<$t> {
            /// Returns the 64-bit product (`mul.wide`).
            #[track_caller]
            pub fn mul_wide(self, b: impl Value<$t>) -> Reg<$wide> {
                let dst = Reg::fresh();
                emit(MulWide { ty: <$t>::TYPE, dst: dst.id, a: self.operand(), b: b.operand() });
                dst
            }

            /// Computes `self · b + c` in 64 bits (`mad.wide`).
            #[track_caller]
            pub fn mad_wide(self, b: impl Value<$t>, c: impl Value<$wide>) -> Reg<$wide> {
                let dst = Reg::fresh();
                emit(MadWide {
                    ty: <$t>::TYPE,
                    dst: dst.id,
                    a: self.operand(),
                    b: b.operand(),
                    c: c.operand(),
                });
                dst
            }
        }
    )*};
}
wide!(u32 => u64, i32 => i64);

impl<T: Float> Reg<T> {
    /// Computes `self · b + c` with one rounding (`fma`).
    #[track_caller]
    pub fn fma(self, b: impl Value<T>, c: impl Value<T>) -> Reg<T> {
        let dst = Reg::fresh();
        emit(Fma {
            ty: T::TYPE,
            dst: dst.id,
            a: self.operand(),
            b: b.operand(),
            c: c.operand(),
        });
        dst
    }
}

impl Reg<Tf32> {
    /// Converts to `f32`, exactly. The inverse, `x.cast::<Tf32>()`, rounds ties away from zero.
    #[track_caller]
    pub fn as_f32(self) -> Reg<f32> {
        self.cast()
    }
}
