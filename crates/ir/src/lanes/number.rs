//! GPU arithmetic of one lane.
//!
//! Integers wrap. Floats round to nearest even and keep subnormals; every NaN
//! result is canonical: `0x7fffffff` for `f32`, `0x7fff` for 16-bit floats.
//! Where PTX leaves a result undefined (NaN payloads, division by zero), this
//! module returns the result of an H200.

use super::narrow::{HalfFloat, add_round_to_odd_f64};
use crate::machine::Lane;
use crate::types::{Bf16x2, F16x2};
use half::{bf16, f16};

/// Arithmetic of integers and floats.
pub trait Number: Lane {
    /// Sum.
    fn add(self, b: Self) -> Self;
    /// Difference.
    fn sub(self, b: Self) -> Self;
    /// Product; the low half for integers.
    fn mul(self, b: Self) -> Self;
    /// `self · b + c`; fused (one rounding) for floats.
    fn mul_add(self, b: Self, c: Self) -> Self;
    /// Minimum; if one operand is a NaN, the other; −0 < +0.
    fn min(self, b: Self) -> Self;
    /// Maximum; if one operand is a NaN, the other; −0 < +0.
    fn max(self, b: Self) -> Self;
}

/// Signed numbers.
pub trait Signed: Number {
    /// Negation; the minimum integer maps to itself.
    fn neg(self) -> Self;
    /// Absolute value; the minimum integer maps to itself.
    fn abs(self) -> Self;
}

/// Numbers with division.
pub trait Divide: Number {
    /// Quotient. Integers round toward zero, and division by zero returns all ones; floats round to nearest even.
    fn div(self, b: Self) -> Self;
}

/// Integer and bitwise operations.
pub trait Integer: Number + Divide {
    /// Remainder with the sign of the dividend; all ones if `b` is zero.
    fn rem(self, b: Self) -> Self;
    /// High half of the product.
    fn mul_hi(self, b: Self) -> Self;
    /// Bitwise and.
    fn and(self, b: Self) -> Self;
    /// Bitwise or.
    fn or(self, b: Self) -> Self;
    /// Bitwise exclusive or.
    fn xor(self, b: Self) -> Self;
    /// Bitwise complement.
    fn not(self) -> Self;
    /// Left shift; 0 for a shift by the width or more.
    fn shl(self, b: u32) -> Self;
    /// Right shift, arithmetic for signed types; a shift by the width or more leaves only sign bits.
    fn shr(self, b: u32) -> Self;
    /// Number of set bits.
    fn popc(self) -> u32;
    /// Number of leading zero bits.
    fn clz(self) -> u32;
    /// Position of the most significant non-sign bit; all ones if there is none.
    fn bfind(self) -> u32;
    /// The bits in reverse order.
    fn brev(self) -> Self;
}

/// Integers with a double-width product.
pub trait WideMultiply: Integer {
    /// The double-width type.
    type Wide: Lane;
    /// Full product.
    fn mul_wide(self, b: Self) -> Self::Wide;
    /// Full product plus `c`.
    fn mad_wide(self, b: Self, c: Self::Wide) -> Self::Wide;
}

/// Integers with bit-field extraction.
pub trait BitFieldExtract: Integer {
    /// Extracts `len` bits starting at bit `pos`, sign-extended for signed types; 0 if `len` is 0.
    ///
    /// Only the low 8 bits of `pos` and `len` are used. Bits beyond the word read as its sign.
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
                // Two shifts by at most half the width keep the sign fill at any count.
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
        impl WideMultiply for $t {
            type Wide = $wide;
            #[inline]
            fn mul_wide(self, b: Self) -> $wide { $wide::from(self) * $wide::from(b) }
            #[inline]
            fn mad_wide(self, b: Self, c: $wide) -> $wide {
                WideMultiply::mul_wide(self, b).wrapping_add(c)
            }
        }
    )*};
}
wide_integers!(u32 u64, i32 i64);

macro_rules! bit_fields {
    ($($t:ident $wide:ident),*) => {$(
        impl BitFieldExtract for $t {
            #[inline]
            fn bfe(self, pos: u32, len: u32) -> Self {
                // 64 bits hold the sign fill above the word.
                let (pos, len) = (Ord::min(pos & 0xff, 32), Ord::min(len & 0xff, 32));
                let rest = $wide::from(self) >> pos;
                let unused = 63 - (len.wrapping_sub(1) & 63);
                let field = (rest << unused >> unused) as $t;
                if len == 0 { 0 } else { field }
            }
        }
    )*};
}
bit_fields!(u32 u64, i32 i64);

/// Operations on the bits of a float.
pub trait FloatBits: Lane {
    /// Returns the number, or the canonical NaN for any NaN.
    fn canonical(self) -> Self;
    /// Returns whether the bits are a NaN.
    fn is_nan_bits(self) -> bool;
    /// Returns an integer that orders all numbers, with −0 below +0.
    fn order_key(self) -> i32;
    /// Flips the sign bit.
    fn flip_sign(self) -> Self;
    /// Clears the sign bit.
    fn clear_sign(self) -> Self;

    /// Returns `self` if `first`, otherwise `b`; if one is a NaN, returns the other.
    #[inline]
    fn select_number(self, b: Self, first: bool) -> Self {
        let number = if first { self } else { b };
        let number = if self.is_nan_bits() { b } else { number };
        let number = if b.is_nan_bits() { self } else { number };
        number.canonical()
    }
}

macro_rules! float_bits {
    ($t:ident, $bits:ident, $int:ident, infinity $inf:literal, nan $nan:literal) => {
        impl FloatBits for $t {
            #[inline]
            fn canonical(self) -> Self {
                // Select on bits: the compiler may fold a select between a float and a NaN constant.
                let bits = self.to_bits();
                $t::from_bits(if bits & ($bits::MAX >> 1) > $inf {
                    $nan
                } else {
                    bits
                })
            }
            #[inline]
            fn is_nan_bits(self) -> bool {
                self.to_bits() & ($bits::MAX >> 1) > $inf
            }
            #[inline]
            fn order_key(self) -> i32 {
                let bits = self.to_bits() as $int;
                // Negative numbers order backwards: flip all bits but the sign.
                (bits ^ ((bits >> ($int::BITS - 1)) & $int::MAX)).into()
            }
            #[inline]
            fn flip_sign(self) -> Self {
                $t::from_bits(self.to_bits() ^ !($bits::MAX >> 1))
            }
            #[inline]
            fn clear_sign(self) -> Self {
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
        // The product is exact in f64, and round-to-odd keeps the sum on its side of a
        // tie. `f32::mul_add` is a library call per lane if the target has no FMA.
        let product = f64::from(self) * f64::from(b);
        (add_round_to_odd_f64(product, f64::from(c)) as f32).canonical()
    }
    #[inline]
    fn min(self, b: Self) -> Self {
        self.select_number(b, self.order_key() < b.order_key())
    }
    #[inline]
    fn max(self, b: Self) -> Self {
        self.select_number(b, self.order_key() > b.order_key())
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
                // The product is exact in f32, or it underflows below half of the last place of the result.
                $t::round(self.widen() * b.widen())
            }
            #[inline]
            fn mul_add(self, b: Self, c: Self) -> Self { self.fma(b, c) }
            #[inline]
            fn min(self, b: Self) -> Self { self.select_number(b, self.order_key() < b.order_key()) }
            #[inline]
            fn max(self, b: Self) -> Self { self.select_number(b, self.order_key() > b.order_key()) }
        }
    )*};
}
narrow_numbers!(f16, bf16);

macro_rules! signed_floats {
    ($($t:ident),*) => {$(
        impl Signed for $t {
            #[inline]
            fn neg(self) -> Self { self.flip_sign().canonical() }
            #[inline]
            fn abs(self) -> Self { self.clear_sign().canonical() }
        }
    )*};
}
signed_floats!(f32, f16, bf16);

/// Packed pairs: elementwise on the halves.
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
            /// Applies `f` to each half.
            #[inline]
            pub fn map(self, f: impl Fn($half) -> $half) -> Self {
                let [lo, hi] = self.split();
                Self::new(f(lo), f(hi))
            }
            /// Applies `f` to corresponding halves.
            #[inline]
            pub fn zip(self, b: Self, f: impl Fn($half, $half) -> $half) -> Self {
                let ([a0, a1], [b0, b1]) = (self.split(), b.split());
                Self::new(f(a0, b0), f(a1, b1))
            }
        }
    )*};
}
pair_maps!(F16x2 of f16, Bf16x2 of bf16);
