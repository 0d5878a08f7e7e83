//! Floats narrower than `f32`: exact widening and correct rounding.
//!
//! `f16` and `bf16` arithmetic rounds the exact result once, to nearest even.
//! An intermediate result in a wider format must therefore avoid double
//! rounding. Either the wide result is exact or has at least 2p + 2 bits of
//! precision (Figueroa: sums in `f32`, p = 11 or 8), or it is *rounded to odd*:
//! truncated, with the last bit set if any bit was lost. A value rounded to
//! odd with two extra bits rounds like the exact value (Boldo and Melquiond).

use crate::machine::Lane;
use crate::types::Tf32;
use half::{bf16, f16};

/// A 16-bit float whose arithmetic is computed in `f32`.
pub trait HalfFloat: Lane {
    /// Converts to `f32` exactly; a NaN keeps its payload.
    fn widen(self) -> f32;
    /// Rounds to nearest even; a NaN becomes canonical (`0x7fff`).
    fn round(x: f32) -> Self;

    /// Rounds an `f64` once, to nearest even.
    #[inline]
    fn round_f64(x: f64) -> Self {
        Self::round(round_to_odd_f32(x))
    }
    /// Computes `self · b + c` with one rounding.
    fn fma(self, b: Self, c: Self) -> Self;
}

impl HalfFloat for f16 {
    #[inline]
    fn widen(self) -> f32 {
        let bits = u32::from(self.to_bits());
        let (sign, abs) = ((bits & 0x8000) << 16, bits & 0x7fff);
        // The shifted bits as an f32 are the number times 2^-112, also for subnormals.
        let wide = (f32::from_bits(abs << 13) * f32::from_bits((127 + 112) << 23)).to_bits();
        let special = if abs >= 0x7c00 { 0xff << 23 } else { 0 };
        f32::from_bits(sign | wide | special)
    }

    #[inline]
    fn round(x: f32) -> Self {
        let bits = x.to_bits();
        let (sign, abs) = (bits >> 16 & 0x8000, bits & 0x7fff_ffff);
        let normal = (abs
            .wrapping_sub(112 << 23)
            .wrapping_add(0xfff + (abs >> 13 & 1)))
            >> 13;
        // Adding 0.5 aligns the last place with that of an f16 subnormal, so the f32 addition rounds.
        let subnormal = (f32::from_bits(abs) + 0.5)
            .to_bits()
            .wrapping_sub(0.5f32.to_bits());
        let narrow = if abs < 113 << 23 { subnormal } else { normal };
        let signed = sign | narrow.min(0x7c00);
        f16::from_bits(if abs > 0xff << 23 { 0x7fff } else { signed } as u16)
    }

    #[inline]
    fn fma(self, b: Self, c: Self) -> Self {
        // 11 by 11 bits and no exponent overflow: the product is exact in f32.
        Self::round(add_round_to_odd_f32(self.widen() * b.widen(), c.widen()))
    }
}

impl HalfFloat for bf16 {
    #[inline]
    fn widen(self) -> f32 {
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }

    #[inline]
    fn round(x: f32) -> Self {
        let bits = x.to_bits();
        let near = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
        let nan = bits & 0x7fff_ffff > 0xff << 23;
        bf16::from_bits(if nan { 0x7fff } else { near } as u16)
    }

    #[inline]
    fn fma(self, b: Self, c: Self) -> Self {
        // bf16 has the exponent range of f32: only f64 holds every product exactly.
        let product = f64::from(self.widen()) * f64::from(b.widen());
        Self::round_f64(add_round_to_odd_f64(product, f64::from(c.widen())))
    }
}

impl Tf32 {
    /// The low mantissa bits of an `f32`, which TF32 ignores.
    pub const UNUSED: u32 = (1 << 13) - 1;

    /// Rounds to nearest, ties away from zero.
    ///
    /// A NaN is truncated, as on the hardware: a NaN with a payload in the unused
    /// bits only becomes an infinity.
    #[inline]
    pub fn round(x: f32) -> Self {
        let bits = x.to_bits();
        let nan = bits & 0x7fff_ffff > 0xff << 23;
        Tf32(
            if nan {
                bits
            } else {
                bits.wrapping_add(1 << 12)
            } & !Self::UNUSED,
        )
    }

    /// Converts to `f32`: clears the unused bits.
    #[inline]
    pub fn widen(self) -> f32 {
        f32::from_bits(self.0 & !Self::UNUSED)
    }
}

/// Rounds to odd (see the module documentation).
#[inline]
pub fn round_to_odd_f32(x: f64) -> f32 {
    let near = x as f32;
    let back = f64::from(near);
    let truncated = near.to_bits().wrapping_sub(u32::from(back.abs() > x.abs()));
    f32::from_bits(truncated | u32::from(back != x))
}

macro_rules! add_round_to_odd {
    ($($name:ident $t:ident),*) => {$(
        /// Computes `a + b`, rounded to odd.
        #[inline]
        pub fn $name(a: $t, b: $t) -> $t {
            let sum = a + b;
            // Knuth's TwoSum: a + b = sum + error exactly.
            let t = sum - a;
            let error = (a - (sum - t)) + (b - t);
            // An inexact even sum moves to its odd neighbor in the direction of the error.
            // The error of an infinite sum is NaN, so it counts as exact.
            let bits = sum.to_bits();
            let inexact = error.abs() > 0.0;
            let outwards = (error > 0.0) == (sum > 0.0);
            let odd = if outwards { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
            $t::from_bits(if inexact && bits & 1 == 0 { odd } else { bits })
        }
    )*};
}
add_round_to_odd!(add_round_to_odd_f32 f32, add_round_to_odd_f64 f64);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::fake::random_words;
    use crate::lanes::number;

    /// A float format; `last_place` is the exponent of the last subnormal place.
    struct Format {
        precision: i32,
        last_place: i32,
        max: f64,
    }
    const F16: Format = Format {
        precision: 11,
        last_place: -24,
        max: 65504.0,
    };
    const BF16: Format = Format {
        precision: 8,
        last_place: -133,
        max: 255.0 / 128.0 * (1u128 << 127) as f64,
    };

    impl Format {
        /// Rounds `n · 2^unit` in integer arithmetic.
        fn nearest(&self, n: i128, unit: i32) -> f64 {
            let abs = n.unsigned_abs();
            let top = 127 - abs.leading_zeros() as i32;
            let drop = (top + 1 - self.precision)
                .max(self.last_place - unit)
                .clamp(0, 127);
            let (kept, lost) = (abs >> drop, abs & ((1 << drop) - 1));
            let half = (1u128 << drop) >> 1;
            let up = drop > 0 && (lost > half || lost == half && kept & 1 == 1);
            let value = (kept + u128::from(up)) as f64 * 2f64.powi(drop + unit);
            let value = if value > self.max {
                f64::INFINITY
            } else {
                value
            };
            if n < 0 { -value } else { value }
        }
    }

    /// Returns `n` for a finite number `n · 2^unit`.
    fn scaled(x: f32, unit: i32) -> i128 {
        (f64::from(x) * 2f64.powi(-unit)) as i128
    }

    #[test]
    fn every_f16_widens_exactly_and_rounds_back() {
        for bits in 0..=u16::MAX {
            let h = f16::from_bits(bits);
            if h.is_nan() {
                assert!(h.widen().is_nan());
                assert_eq!(f16::round(h.widen()).to_bits(), 0x7fff);
                continue;
            }
            let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
            let (e, f) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
            let want = match e {
                0 => f * 2f64.powi(-24),
                31 => f64::INFINITY,
                _ => (1024.0 + f) * 2f64.powi(e - 25),
            };
            assert_eq!(
                f64::from(h.widen()).to_bits(),
                (sign * want).to_bits(),
                "{bits:#06x}"
            );
            assert_eq!(f16::round(h.widen()).to_bits(), bits);
        }
    }

    #[test]
    fn every_bf16_rounds_back() {
        for bits in 0..=u16::MAX {
            let h = bf16::from_bits(bits);
            let want = if h.is_nan() { 0x7fff } else { bits };
            assert_eq!(bf16::round(h.widen()).to_bits(), want);
        }
    }

    /// Checks, for all adjacent numbers, that the tie rounds to even and values beside it to the
    /// nearer number.
    fn check_ties<T: HalfFloat>(
        infinity: u16,
        from_bits: impl Fn(u16) -> T,
        bits: impl Fn(T) -> u16,
    ) {
        for low in 0..infinity - 1 {
            let (a, b) = (from_bits(low).widen(), from_bits(low + 1).widen());
            let tie = ((f64::from(a) + f64::from(b)) / 2.0) as f32;
            let step = |by: i32| f32::from_bits(tie.to_bits().wrapping_add_signed(by));
            let even = low + (low & 1);
            let negative = |x: f32| bits(T::round(-x)) & 0x7fff;
            for (x, want) in [(step(-1), low), (tie, even), (step(1), low + 1)] {
                assert_eq!(bits(T::round(x)), want, "{low:#06x} {x:e}");
                assert_eq!(negative(x), want, "{low:#06x} {x:e}");
            }
            // Closer to the tie than an f32 can represent.
            let (below, above) = (
                f64::from(tie) * (1.0 - 1e-15),
                f64::from(tie) * (1.0 + 1e-15),
            );
            assert_eq!(bits(T::round_f64(below)), low);
            assert_eq!(bits(T::round_f64(f64::from(tie))), even);
            assert_eq!(bits(T::round_f64(above)), low + 1);
        }
    }

    #[test]
    fn f16_ties_go_to_even() {
        check_ties(0x7c00, f16::from_bits, f16::to_bits);
        assert_eq!(f16::round(65519.996).to_bits(), 0x7bff);
        assert_eq!(f16::round(65520.0).to_bits(), 0x7c00);
        assert_eq!(f16::round(f32::MAX).to_bits(), 0x7c00);
        assert_eq!(f16::round(-f32::INFINITY).to_bits(), 0xfc00);
        assert_eq!(f16::round(-0.0).to_bits(), 0x8000);
        assert_eq!(f16::round_f64(1e300).to_bits(), 0x7c00);
        assert_eq!(f16::round_f64(-1e-300).to_bits(), 0x8000);
    }

    #[test]
    fn bf16_ties_go_to_even() {
        check_ties(0x7f80, bf16::from_bits, bf16::to_bits);
        assert_eq!(bf16::round(f32::MAX).to_bits(), 0x7f80);
        assert_eq!(bf16::round(f32::from_bits(1)).to_bits(), 0);
        assert_eq!(bf16::round_f64(1e300).to_bits(), 0x7f80);
    }

    #[test]
    fn tf32_ties_go_away_from_zero() {
        let round = |bits| Tf32::round(f32::from_bits(bits)).0;
        assert_eq!(round(0x3f80_0fff), 0x3f80_0000);
        assert_eq!(round(0x3f80_1000), 0x3f80_2000);
        assert_eq!(round(0xbf80_1000), 0xbf80_2000);
        assert_eq!(round(0x3f80_3000), 0x3f80_4000);
        assert_eq!(round(0x7f7f_ffff), 0x7f80_0000);
        assert_eq!(round(0x7f80_0000), 0x7f80_0000);
        assert_eq!(round(0xff87_78ab), 0xff87_6000);
        assert_eq!(round(0x7f80_0001), 0x7f80_0000);
        assert_eq!(Tf32(0x3f80_1fff).widen(), 1.0);
    }

    #[test]
    fn round_to_odd_keeps_the_side_of_a_tie() {
        let tie = 1.0 + 2f64.powi(-24); // between 1 and the next f32
        for (x, bits) in [
            (1.0, 0x3f80_0000),
            (tie, 0x3f80_0001),
            (1.0 + 1e-15, 0x3f80_0001),
        ] {
            assert_eq!(round_to_odd_f32(x).to_bits(), bits);
            assert_eq!(round_to_odd_f32(-x).to_bits(), bits | 1 << 31);
        }
        assert_eq!(round_to_odd_f32(1.0 - 1e-15).to_bits(), 0x3f7f_ffff);
        assert_eq!(round_to_odd_f32(1e-300).to_bits(), 1);
        assert_eq!(round_to_odd_f32(1e300), f32::MAX);
        assert_eq!(round_to_odd_f32(f64::INFINITY), f32::INFINITY);
    }

    #[test]
    fn f32_fma_equals_the_standard_library() {
        use number::Number;
        // Mostly close exponents, so that the terms overlap; sometimes the full range.
        let mut n = random_words(1);
        let mut float = |spread: u32| {
            let x = n.next().unwrap_or(0);
            let exponent = 127 - spread / 2 + (x >> 40) as u32 % spread;
            // Few mantissa bits produce ties.
            let mantissa =
                x as u32 & 0x7f_ffff & [!0, 0x7f_f000, 0x60_0001][(x >> 60) as usize % 3];
            f32::from_bits((x >> 32) as u32 & 1 << 31 | exponent << 23 | mantissa)
        };
        for spread in [4, 30, 60, 252] {
            for _ in 0..100_000 {
                let (a, b, c) = (float(spread), float(spread), float(spread));
                let (ours, theirs) = (Number::mul_add(a, b, c), f32::mul_add(a, b, c));
                assert_eq!(ours.to_bits(), theirs.to_bits(), "{a:e} * {b:e} + {c:e}");
            }
        }
        let tiny = f32::from_bits(1);
        assert_eq!(
            Number::mul_add(tiny, 0.5, tiny),
            f32::mul_add(tiny, 0.5, tiny)
        );
        assert_eq!(
            Number::mul_add(f32::MAX, f32::MAX, f32::NEG_INFINITY),
            f32::NEG_INFINITY
        );
        assert_eq!(Number::mul_add(f32::MAX, 2.0, -f32::MAX), f32::MAX);
        assert_eq!(Number::mul_add(-0.0f32, 1.0, -0.0).to_bits(), 1 << 31);
        assert_eq!(Number::mul_add(-1.0f32, 1.0, 1.0).to_bits(), 0);
        assert_eq!(
            Number::mul_add(f32::INFINITY, 0.0, 1.0).to_bits(),
            0x7fff_ffff
        );
    }

    /// Compares sum, difference, product and FMA with exact integer arithmetic.
    fn check_exact<T: HalfFloat + number::Number>(
        format: &Format,
        unit: i32,
        mut number: impl FnMut() -> T,
    ) {
        for _ in 0..200_000 {
            let (a, b, c) = (number(), number(), number());
            let [x, y, z] = [a, b, c].map(|v| scaled(v.widen(), unit));
            let shift = -unit; // products count in units of 2^(2 unit)
            let check = |operator: &str, got: T, n: i128, unit: i32| {
                let want = format.nearest(n, unit);
                assert_eq!(
                    f64::from(got.widen()),
                    want,
                    "{:e} {operator} {:e}, {:e}",
                    a.widen(),
                    b.widen(),
                    c.widen()
                );
            };
            check("+", a.add(b), x + y, unit);
            check("-", a.sub(b), x - y, unit);
            check("*", a.mul(b), x * y, 2 * unit);
            check("*+", a.mul_add(b, c), x * y + (z << shift), 2 * unit);
        }
    }

    #[test]
    fn f16_arithmetic_rounds_once() {
        let mut n = random_words(2);
        // Any exponents; half of the time small ones, for subnormal results.
        check_exact(&F16, -24, || {
            let x = n.next().unwrap_or(0) as u16;
            f16::from_bits(match x & 0x7c00 {
                0x7c00 => x & 0x83ff,
                _ if x & 1 == 1 => x & 0x9fff,
                _ => x,
            })
        });
    }

    #[test]
    fn bf16_arithmetic_rounds_once() {
        let mut n = random_words(3);
        // Exponents from 2^-20 to 2^20: exact sums fit into 128 bits.
        check_exact(&BF16, -30, || {
            let x = n.next().unwrap_or(0);
            let exponent = 127 - 20 + (x >> 32) % 40;
            bf16::from_bits((x as u16 & 0x807f) | (exponent as u16) << 7)
        });
    }

    #[test]
    fn bf16_fma_with_a_tiny_addend_keeps_the_side_of_a_tie() {
        let b = bf16::from_bits;
        let fma = |x: u16, y: u16, z: u16| number::Number::mul_add(b(x), b(y), b(z)).to_bits();
        // (1 + 2^-7) · 1.5 = 1.5 + 1.5 · 2^-7 is a tie.
        let (x, y) = (0x3f81, 0x3fc0);
        assert_eq!(fma(x, y, 0x0000), 0x3fc2);
        assert_eq!(fma(x, y, 0x0001), 0x3fc2); // plus 2^-133
        assert_eq!(fma(x, y, 0x8001), 0x3fc1); // minus 2^-133
        assert_eq!(fma(x, y, 0x7f80), 0x7f80);
        assert_eq!(fma(x, 0x7f80, 0xff80), 0x7fff);
    }

    #[test]
    fn bf16_products_near_underflow_round_once() {
        // 8-bit significands with exponents around the underflow of their product.
        for sum in -153..=-143 {
            let (p, q) = (sum / 2, sum - sum / 2);
            for m in 128..256i16 {
                for n in 128..256i16 {
                    let a = bf16::from_bits(((p + 134) as u16) << 7 | (m - 128) as u16);
                    let b = bf16::from_bits(((q + 134) as u16) << 7 | (n - 128) as u16);
                    let want = BF16.nearest(i128::from(m) * i128::from(n), sum);
                    assert_eq!(f64::from(number::Number::mul(a, b).widen()), want);
                }
            }
        }
    }
}
