//! What numbers mean on the GPU, one lane at a time.
//!
//! Integers wrap. Floats round to nearest even, keep subnormals, and give one
//! NaN for all: `0x7fffffff` for `f32`, `0x7fff` for the 16-bit floats. Where
//! PTX leaves a result open (NaNs, division by zero) it is the one an H200 gives.

use super::narrow::{Narrow, odd_sum_f64};
use crate::machine::Lane;
use crate::types::{Bf16x2, F16x2};
use half::{bf16, f16};

/// Arithmetic that integers and floats share.
pub trait Number: Lane {
    /// Sum.
    fn add(self, b: Self) -> Self;
    /// Difference.
    fn sub(self, b: Self) -> Self;
    /// Product; of integers the low half.
    fn mul(self, b: Self) -> Self;
    /// `self · b + c`; of floats with one rounding.
    fn mul_add(self, b: Self, c: Self) -> Self;
    /// The lesser; of a NaN and a number the number; −0 is less than +0.
    fn min(self, b: Self) -> Self;
    /// The greater; of a NaN and a number the number; −0 is less than +0.
    fn max(self, b: Self) -> Self;
}

/// Numbers with a sign.
pub trait Signed: Number {
    /// The number with its sign turned; the least integer stays as it is.
    fn neg(self) -> Self;
    /// The number without its sign; the least integer stays as it is.
    fn abs(self) -> Self;
}

/// Numbers that divide.
pub trait Divide: Number {
    /// Quotient: of integers cut towards zero, all ones if `b` is zero; of floats rounded.
    fn div(self, b: Self) -> Self;
}

/// Integers as words of bits.
pub trait Integer: Number + Divide {
    /// Remainder with the dividend's sign; all ones if `b` is zero.
    fn rem(self, b: Self) -> Self;
    /// The high half of the product.
    fn mul_hi(self, b: Self) -> Self;
    /// Bits set in both.
    fn and(self, b: Self) -> Self;
    /// Bits set in either.
    fn or(self, b: Self) -> Self;
    /// Bits set in one of the two.
    fn xor(self, b: Self) -> Self;
    /// All bits turned.
    fn not(self) -> Self;
    /// Shifted left; nothing is left of a shift by the width or more.
    fn shl(self, b: u32) -> Self;
    /// Shifted right, filled with the sign; a shift by the width or more leaves only the fill.
    fn shr(self, b: u32) -> Self;
    /// Bits that are set.
    fn popc(self) -> u32;
    /// Zero bits above the highest one that is set.
    fn clz(self) -> u32;
    /// Where the highest bit stands that is not the sign's fill; all ones if there is none.
    fn bfind(self) -> u32;
    /// The bits in reverse order.
    fn brev(self) -> Self;
}

/// Integers with a type of twice the width.
pub trait Wide: Integer {
    /// That type.
    type Wide: Lane;
    /// The whole product.
    fn mul_wide(self, b: Self) -> Self::Wide;
    /// The whole product, plus `c`.
    fn mad_wide(self, b: Self, c: Self::Wide) -> Self::Wide;
}

/// Integers that give out fields of bits.
pub trait Field: Integer {
    /// The field of `len` bits from `pos` up, filled with the type's sign; empty is 0.
    ///
    /// Of both counts the low 8 bits count; above the word stands its fill.
    fn bfe(self, pos: u32, len: u32) -> Self;
}

macro_rules! integers {
    ($($t:ident $double:ident),*) => {$(
        impl Number for $t {
            #[inline]
            fn add(self, b: Self) -> Self { self.wrapping_add(b) }
            #[inline]
            fn sub(self, b: Self) -> Self { self.wrapping_sub(b) }
            #[inline]
            fn mul(self, b: Self) -> Self { self.wrapping_mul(b) }
            #[inline]
            fn mul_add(self, b: Self, c: Self) -> Self { self.wrapping_mul(b).wrapping_add(c) }
            #[inline]
            fn min(self, b: Self) -> Self { Ord::min(self, b) }
            #[inline]
            fn max(self, b: Self) -> Self { Ord::max(self, b) }
        }
        impl Divide for $t {
            #[inline]
            fn div(self, b: Self) -> Self { if b == 0 { !0 } else { self.wrapping_div(b) } }
        }
        impl Integer for $t {
            #[inline]
            fn rem(self, b: Self) -> Self { if b == 0 { !0 } else { self.wrapping_rem(b) } }
            #[inline]
            fn mul_hi(self, b: Self) -> Self {
                ($double::from(self) * $double::from(b) >> Self::BITS) as Self
            }
            #[inline]
            fn and(self, b: Self) -> Self { self & b }
            #[inline]
            fn or(self, b: Self) -> Self { self | b }
            #[inline]
            fn xor(self, b: Self) -> Self { self ^ b }
            #[inline]
            fn not(self) -> Self { !self }
            #[inline]
            fn shl(self, b: u32) -> Self {
                if b < Self::BITS { self.wrapping_shl(b) } else { 0 }
            }
            #[inline]
            fn shr(self, b: u32) -> Self {
                // Two shifts of at most half the width: the fill is the sign's, at any count.
                let b = Ord::min(b, Self::BITS);
                self >> (b / 2) >> (b - b / 2)
            }
            #[inline]
            fn popc(self) -> u32 { self.count_ones() }
            #[inline]
            fn clz(self) -> u32 { self.leading_zeros() }
            #[inline]
            fn bfind(self) -> u32 {
                let fill = Self::shr(self, Self::BITS);
                (Self::BITS - 1).wrapping_sub((self ^ fill).leading_zeros())
            }
            #[inline]
            fn brev(self) -> Self { self.reverse_bits() }
        }
    )*};
}
integers!(u16 u32, u32 u64, i32 i64, u64 u128, i64 i128);

macro_rules! signed_integers {
    ($($t:ident),*) => {$(
        impl Signed for $t {
            #[inline]
            fn neg(self) -> Self { self.wrapping_neg() }
            #[inline]
            fn abs(self) -> Self { self.wrapping_abs() }
        }
    )*};
}
signed_integers!(i32, i64);

macro_rules! wide_integers {
    ($($t:ident $wide:ident),*) => {$(
        impl Wide for $t {
            type Wide = $wide;
            #[inline]
            fn mul_wide(self, b: Self) -> $wide { $wide::from(self) * $wide::from(b) }
            #[inline]
            fn mad_wide(self, b: Self, c: $wide) -> $wide {
                Wide::mul_wide(self, b).wrapping_add(c)
            }
        }
    )*};
}
wide_integers!(u32 u64, i32 i64);

macro_rules! fields {
    ($($t:ident $wide:ident),*) => {$(
        impl Field for $t {
            #[inline]
            fn bfe(self, pos: u32, len: u32) -> Self {
                // In 64 bits the fill above the word is there to be shifted in.
                let (pos, len) = (Ord::min(pos & 0xff, 32), Ord::min(len & 0xff, 32));
                let rest = $wide::from(self) >> pos;
                let unused = 63 - (len.wrapping_sub(1) & 63);
                let field = (rest << unused >> unused) as $t;
                if len == 0 { 0 } else { field }
            }
        }
    )*};
}
fields!(u32 u64, i32 i64);

/// What the bits of a float say of it.
pub trait FloatBits: Lane {
    /// The number, or the one NaN of the hardware.
    fn canonical(self) -> Self;
    /// Is it a NaN?
    fn is_not_a_number(self) -> bool;
    /// Orders all numbers, −0 below +0.
    fn key(self) -> i32;
    /// The other sign.
    fn turn_sign(self) -> Self;
    /// No sign.
    fn drop_sign(self) -> Self;

    /// This or `b`, as asked, unless one is a NaN.
    #[inline]
    fn pick(self, b: Self, first: bool) -> Self {
        let number = if first { self } else { b };
        let number = if self.is_not_a_number() { b } else { number };
        let number = if b.is_not_a_number() { self } else { number };
        number.canonical()
    }
}

macro_rules! float_bits {
    ($t:ident, $bits:ident, $int:ident, infinity $inf:literal, nan $nan:literal) => {
        impl FloatBits for $t {
            #[inline]
            fn canonical(self) -> Self {
                // On bits: a compiler may drop a choice between a float and a NaN it knows to be one.
                let bits = self.to_bits();
                $t::from_bits(if bits & ($bits::MAX >> 1) > $inf {
                    $nan
                } else {
                    bits
                })
            }
            #[inline]
            fn is_not_a_number(self) -> bool {
                self.to_bits() & ($bits::MAX >> 1) > $inf
            }
            #[inline]
            fn key(self) -> i32 {
                let bits = self.to_bits() as $int;
                // Negative numbers order backwards: turn all bits but the sign.
                (bits ^ ((bits >> ($int::BITS - 1)) & $int::MAX)).into()
            }
            #[inline]
            fn turn_sign(self) -> Self {
                $t::from_bits(self.to_bits() ^ !($bits::MAX >> 1))
            }
            #[inline]
            fn drop_sign(self) -> Self {
                $t::from_bits(self.to_bits() & ($bits::MAX >> 1))
            }
        }
    };
}

float_bits!(f32, u32, i32, infinity 0x7f80_0000, nan 0x7fff_ffff);
float_bits!(f16, u16, i16, infinity 0x7c00, nan 0x7fff);
float_bits!(bf16, u16, i16, infinity 0x7f80, nan 0x7fff);

impl Number for f32 {
    #[inline]
    fn add(self, b: Self) -> Self {
        (self + b).canonical()
    }
    #[inline]
    fn sub(self, b: Self) -> Self {
        (self - b).canonical()
    }
    #[inline]
    fn mul(self, b: Self) -> Self {
        (self * b).canonical()
    }
    #[inline]
    fn mul_add(self, b: Self, c: Self) -> Self {
        // The product is exact in f64, and the sum keeps its side of a tie. Not
        // `f32::mul_add`: without FMA in the target that is a call per lane.
        let product = f64::from(self) * f64::from(b);
        (odd_sum_f64(product, f64::from(c)) as f32).canonical()
    }
    #[inline]
    fn min(self, b: Self) -> Self {
        self.pick(b, self.key() < b.key())
    }
    #[inline]
    fn max(self, b: Self) -> Self {
        self.pick(b, self.key() > b.key())
    }
}

impl Divide for f32 {
    #[inline]
    fn div(self, b: Self) -> Self {
        (self / b).canonical()
    }
}

macro_rules! narrow_numbers {
    ($($t:ident),*) => {$(
        impl Number for $t {
            #[inline]
            fn add(self, b: Self) -> Self { $t::round(self.widen() + b.widen()) }
            #[inline]
            fn sub(self, b: Self) -> Self { $t::round(self.widen() - b.widen()) }
            #[inline]
            fn mul(self, b: Self) -> Self {
                // Exact in f32, or less than half of the last place, which f32 does not reach.
                $t::round(self.widen() * b.widen())
            }
            #[inline]
            fn mul_add(self, b: Self, c: Self) -> Self { self.fused(b, c) }
            #[inline]
            fn min(self, b: Self) -> Self { self.pick(b, self.key() < b.key()) }
            #[inline]
            fn max(self, b: Self) -> Self { self.pick(b, self.key() > b.key()) }
        }
    )*};
}
narrow_numbers!(f16, bf16);

macro_rules! signed_floats {
    ($($t:ident),*) => {$(
        impl Signed for $t {
            #[inline]
            fn neg(self) -> Self { self.turn_sign().canonical() }
            #[inline]
            fn abs(self) -> Self { self.drop_sign().canonical() }
        }
    )*};
}
signed_floats!(f32, f16, bf16);

/// Pairs: each half by itself.
macro_rules! pairs {
    ($($pair:ident),*) => {$(
        impl Number for $pair {
            #[inline]
            fn add(self, b: Self) -> Self { self.zip(b, Number::add) }
            #[inline]
            fn sub(self, b: Self) -> Self { self.zip(b, Number::sub) }
            #[inline]
            fn mul(self, b: Self) -> Self { self.zip(b, Number::mul) }
            #[inline]
            fn mul_add(self, b: Self, c: Self) -> Self {
                let ([a0, a1], [b0, b1], [c0, c1]) = (self.split(), b.split(), c.split());
                $pair::new(Number::mul_add(a0, b0, c0), Number::mul_add(a1, b1, c1))
            }
            #[inline]
            fn min(self, b: Self) -> Self { self.zip(b, Number::min) }
            #[inline]
            fn max(self, b: Self) -> Self { self.zip(b, Number::max) }
        }
        impl Signed for $pair {
            #[inline]
            fn neg(self) -> Self { self.map(Signed::neg) }
            #[inline]
            fn abs(self) -> Self { self.map(Signed::abs) }
        }
    )*};
}
pairs!(F16x2, Bf16x2);

macro_rules! pair_maps {
    ($($pair:ident of $half:ident),*) => {$(
        impl $pair {
            /// `f` of each half.
            #[inline]
            pub fn map(self, f: impl Fn($half) -> $half) -> Self {
                let [lo, hi] = self.split();
                Self::new(f(lo), f(hi))
            }
            /// `f` of each half and its partner.
            #[inline]
            pub fn zip(self, b: Self, f: impl Fn($half, $half) -> $half) -> Self {
                let ([a0, a1], [b0, b1]) = (self.split(), b.split());
                Self::new(f(a0, b0), f(a1, b1))
            }
        }
    )*};
}
pair_maps!(F16x2 of f16, Bf16x2 of bf16);
