//! Registers and variables: arithmetic that reads as arithmetic.

use super::state::{emit, error, fresh, with};
use crate::ops::arith::{
    Abs, Add, Div, Fma, Mad, MadWide, Max, Min, Mov, Mul, MulHi, MulWide, Neg, Rem, Sub,
};
use crate::ops::bits::{And, Not, Or, Shl, Shr, Xor};
use crate::ops::compare::{Cmp, PredAnd, PredNot, PredOr, Setp};
use crate::ops::convert::{Bitcast, Cvt, Pack, Unpack};
use crate::types::{Bf16x2, F16x2, Scalar, Tf32, Type};
use crate::value::{Operand, RegId};
use half::{bf16, f16};
use std::marker::PhantomData;
use std::ops;

/// A register of the kernel being built: a value in every lane.
///
/// A register never changes; what changes is a [`Var`]. Rust's own `==` and
/// `if` do not apply to it: compare with [`Reg::eq`] and branch with
/// [`if_`](super::if_).
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

/// A register or a constant of a type.
pub trait Value<T: Scalar>: Copy {
    /// As an operand of an op.
    fn operand(self) -> Operand;

    /// In a register of its own.
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
                "a register of another kernel cannot be used here",
            );
            return Operand::Imm(0);
        }
        Operand::Reg(self.id)
    }
    fn reg(self) -> Reg<T> {
        self
    }
}

/// A coordinate: `u32` or `i32`, register or constant.
pub trait Coord: Copy {
    /// As an operand of an op.
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

impl<T: Scalar> Reg<T> {
    /// A register that nothing has written yet.
    #[track_caller]
    pub(crate) fn fresh() -> Self {
        Self::of(fresh(T::TYPE))
    }

    /// The handle of a register of the open builder.
    pub(crate) fn of(id: RegId) -> Self {
        Self {
            id,
            serial: with(|s| s.serial),
            ty: PhantomData,
        }
    }

    /// Its id in the kernel.
    pub fn id(self) -> RegId {
        self.id
    }

    /// The same bits as another type of the same size.
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

    /// The nearest value of another type.
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

/// A variable: what carries a value from one round of a loop to the next.
#[derive(Debug)]
pub struct Var<T>(Reg<T>);

impl<T> Clone for Var<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Var<T> {}

impl<T: Scalar> Var<T> {
    /// A variable with a first value.
    #[track_caller]
    pub fn new(first: impl Value<T>) -> Self {
        let v = Self(Reg::fresh());
        v.set(first);
        v
    }

    /// A variable that the role sets once, at its start.
    #[track_caller]
    pub(crate) fn carried(first: T) -> Self {
        let frame = crate::loc::Frame::caller();
        let id = with(|s| Some(s.in_preamble(T::TYPE, frame, first.to_bits())));
        Self(Reg::of(id.unwrap_or(RegId(0))))
    }

    /// Its value now.
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

    /// Gives it a new value.
    #[track_caller]
    pub fn set(self, value: impl Value<T>) {
        emit(Mov {
            ty: T::TYPE,
            dst: self.0.id,
            src: value.operand(),
        });
    }
}

/// A type with sums, differences, products, minimum and maximum.
pub trait Arith: Scalar {}
/// An integer type of a register.
pub trait Int: Arith {}
/// A floating-point type of a register.
pub trait Float: Arith {}
/// A type with bitwise operations.
pub trait Bits: Scalar {}
/// A type with an order.
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

macro_rules! shift {
    ($trait:ident, $method:ident, $op:ident: $($t:ty),*) => {$(
        impl<B: Value<u32>> ops::$trait<B> for Reg<$t> {
            type Output = Reg<$t>;
            #[track_caller]
            fn $method(self, b: B) -> Reg<$t> {
                let dst = Reg::fresh();
                emit($op { ty: <$t>::TYPE, dst: dst.id, a: self.operand(), b: b.operand() });
                dst
            }
        }
    )*};
}
shift!(Shl, shl, Shl: u16, u32, i32, u64, i64);
shift!(Shr, shr, Shr: u16, u32, i32, u64, i64);

macro_rules! negate {
    ($($t:ty),*) => {$(
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
negate!(i32, i64, f32, f16, bf16, F16x2, Bf16x2);

macro_rules! invert {
    ($($t:ty),*) => {$(
        impl ops::Not for Reg<$t> {
            type Output = Reg<$t>;
            #[track_caller]
            fn not(self) -> Reg<$t> {
                let dst = Reg::fresh();
                emit(Not { ty: <$t>::TYPE, dst: dst.id, a: self.operand() });
                dst
            }
        }
    )*};
}
invert!(u16, u32, i32, u64, i64);

impl ops::Not for Reg<bool> {
    type Output = Reg<bool>;
    #[track_caller]
    fn not(self) -> Reg<bool> {
        let dst = Reg::fresh();
        emit(PredNot {
            dst: dst.id,
            a: self.operand(),
        });
        dst
    }
}

impl ops::BitAnd for Reg<bool> {
    type Output = Reg<bool>;
    #[track_caller]
    fn bitand(self, b: Reg<bool>) -> Reg<bool> {
        let dst = Reg::fresh();
        emit(PredAnd {
            dst: dst.id,
            a: self.operand(),
            b: b.operand(),
        });
        dst
    }
}

impl ops::BitOr for Reg<bool> {
    type Output = Reg<bool>;
    #[track_caller]
    fn bitor(self, b: Reg<bool>) -> Reg<bool> {
        let dst = Reg::fresh();
        emit(PredOr {
            dst: dst.id,
            a: self.operand(),
            b: b.operand(),
        });
        dst
    }
}

macro_rules! comparison {
    ($($(#[$doc:meta])* $name:ident = $cmp:ident;)*) => {
        #[allow(clippy::should_implement_trait)] // a register has no `bool` to return
        impl<T: Compare> Reg<T> {$(
            $(#[$doc])*
            #[track_caller]
            pub fn $name(self, b: impl Value<T>) -> Reg<bool> {
                let dst = Reg::fresh();
                emit(Setp { cmp: Cmp::$cmp, ty: T::TYPE, dst: dst.id, a: self.operand(), b: b.operand() });
                dst
            }
        )*}
    };
}
comparison! {
    /// Are they equal?
    eq = Eq;
    /// Do they differ?
    ne = Ne;
    /// Is this one less?
    lt = Lt;
    /// Is this one less or equal?
    le = Le;
    /// Is this one greater?
    gt = Gt;
    /// Is this one greater or equal?
    ge = Ge;
}

impl<T: Arith> Reg<T> {
    /// The lesser of two.
    #[track_caller]
    pub fn min(self, b: impl Value<T>) -> Reg<T> {
        min(self, b)
    }

    /// The greater of two.
    #[track_caller]
    pub fn max(self, b: impl Value<T>) -> Reg<T> {
        max(self, b)
    }
}

impl<T: Int> Reg<T> {
    /// `self · b + c`, wrapping.
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

    /// The high half of the product.
    #[track_caller]
    pub fn mul_hi(self, b: impl Value<T>) -> Reg<T> {
        mul_hi(self, b)
    }
}

impl Reg<u32> {
    /// The quotient by a constant or register, rounded up.
    #[track_caller]
    pub fn div_ceil(self, b: u32) -> Reg<u32> {
        if b.is_power_of_two() {
            // No wrap for values near 2^32.
            let (q, r) = (self >> b.trailing_zeros(), self & (b - 1));
            let extra = super::select(r.ne(0u32), 1u32, 0u32);
            return q + extra;
        }
        let q = self / b;
        let extra = super::select((q * b).ne(self), 1u32, 0u32);
        q + extra
    }

    /// The 64-bit product.
    #[track_caller]
    pub fn mul_wide(self, b: impl Value<u32>) -> Reg<u64> {
        let dst = Reg::fresh();
        emit(MulWide {
            ty: Type::U32,
            dst: dst.id,
            a: self.operand(),
            b: b.operand(),
        });
        dst
    }

    /// `self · b + c` in 64 bits.
    #[track_caller]
    pub fn mad_wide(self, b: impl Value<u32>, c: impl Value<u64>) -> Reg<u64> {
        let dst = Reg::fresh();
        emit(MadWide {
            ty: Type::U32,
            dst: dst.id,
            a: self.operand(),
            b: b.operand(),
            c: c.operand(),
        });
        dst
    }
}

impl<T: Float> Reg<T> {
    /// `self · b + c` with one rounding.
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

    /// The magnitude.
    #[track_caller]
    pub fn abs(self) -> Reg<T> {
        let dst = Reg::fresh();
        emit(Abs {
            ty: T::TYPE,
            dst: dst.id,
            a: self.operand(),
        });
        dst
    }
}

/// Two halves of a packed register.
pub trait Packed: Scalar {
    /// Each half.
    type Half: Scalar;
}
impl Packed for F16x2 {
    type Half = f16;
}
impl Packed for Bf16x2 {
    type Half = bf16;
}

impl<T: Packed> Reg<T> {
    /// Rounds two `f32` and packs them.
    #[track_caller]
    pub fn round(lo: impl Value<f32>, hi: impl Value<f32>) -> Self {
        pack(Type::F32, lo.operand(), hi.operand())
    }

    /// Packs two halves.
    #[track_caller]
    pub fn pack(lo: impl Value<T::Half>, hi: impl Value<T::Half>) -> Self {
        pack(T::Half::TYPE, lo.operand(), hi.operand())
    }

    /// The two halves, low first.
    #[track_caller]
    pub fn halves(self) -> [Reg<T::Half>; 2] {
        unpack(self)
    }

    /// The two halves as `f32`, low first; exact.
    #[track_caller]
    pub fn widen(self) -> [Reg<f32>; 2] {
        unpack(self)
    }
}

#[track_caller]
fn pack<T: Scalar>(from: Type, lo: Operand, hi: Operand) -> Reg<T> {
    let dst = Reg::fresh();
    emit(Pack {
        from,
        to: T::TYPE,
        dst: dst.id,
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
        lo: lo.id,
        hi: hi.id,
        src: src.operand(),
    });
    [lo, hi]
}

impl Reg<u64> {
    /// Joins two words.
    #[track_caller]
    pub fn join(lo: impl Value<u32>, hi: impl Value<u32>) -> Self {
        pack(Type::U32, lo.operand(), hi.operand())
    }

    /// The two words, low first.
    #[track_caller]
    pub fn words(self) -> [Reg<u32>; 2] {
        unpack(self)
    }
}

impl Reg<Tf32> {
    /// The same number as `f32`.
    #[track_caller]
    pub fn as_f32(self) -> Reg<f32> {
        self.bitcast()
    }
}
