//! The 8-bit floats: exact widening, and saturating rounding (`.satfinite`).
//!
//! | | exponent bias | mantissa bits | largest | infinity | NaN |
//! |---|---|---|---|---|---|
//! | e4m3 | 7 | 3 | `0x7e` = 448 | none | `0x7f` |
//! | e5m2 | 15 | 2 | `0x7b` = 57344 | `0x7c` | `0x7d` to `0x7f` |
//!
//! The codes equal those of an H200 for every `f32` and every `f16`.

use crate::types::{E4m3, E5m2};

/// The code of every NaN result, for either sign.
const NAN: u8 = 0x7f;

/// Rounds the absolute value of an `f32`, passed as bits, to nearest even; saturates at `largest`.
#[inline]
fn round<const BIAS: u32, const MANTISSA: u32>(abs: u32, largest: u8) -> u8 {
    let (rebias, drop) = (127 - BIAS, 23 - MANTISSA);
    let normal = abs
        .wrapping_sub(rebias << 23)
        .wrapping_add((1 << (drop - 1)) - 1 + (abs >> drop & 1))
        >> drop;
    // Adding this power of two aligns the last place with that of a subnormal, so the f32 addition rounds.
    let power = (rebias + 1 + drop) << 23;
    let sum = f32::from_bits(abs) + f32::from_bits(power);
    let subnormal = sum.to_bits().wrapping_sub(power);
    let narrow = if abs < (rebias + 1) << 23 {
        subnormal
    } else {
        normal
    };
    narrow.min(largest.into()) as u8
}

macro_rules! fp8 {
    ($($name:ident: bias $bias:literal, mantissa $mantissa:literal, largest $largest:literal, infinity $infinity:expr;)*) => {$(
        impl $name {
            /// Rounds to nearest even. Overflow and infinities saturate to
            /// the largest number; a NaN of either sign becomes `0x7f`.
            #[inline]
            pub fn round(x: f32) -> Self {
                let (sign, abs) = (x.to_bits() >> 24 & 0x80, x.to_bits() & 0x7fff_ffff);
                let narrow = sign as u8 | round::<$bias, $mantissa>(abs, $largest);
                $name(if abs > 0xff << 23 { NAN } else { narrow })
            }

            /// Converts to `f32` exactly; every NaN becomes canonical.
            #[inline]
            pub fn widen(self) -> f32 {
                let (sign, abs) = (u32::from(self.0 & 0x80) << 24, u32::from(self.0 & 0x7f));
                // The shifted bits as an f32 differ from the number by a power of two, also for subnormals.
                let power = f32::from_bits((127 + 127 - $bias) << 23);
                let number = f32::from_bits(abs << (23 - $mantissa)) * power;
                let infinity: u32 = $infinity;
                let bits = sign | if abs == infinity { 0xff << 23 } else { number.to_bits() };
                f32::from_bits(if abs > $largest && abs != infinity { 0x7fff_ffff } else { bits })
            }
        }
    )*};
}
fp8! {
    E4m3: bias 7, mantissa 3, largest 0x7e, infinity u32::MAX;
    E5m2: bias 15, mantissa 2, largest 0x7b, infinity 0x7c;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::{FloatBits, HalfFloat};
    use half::f16;
    use proptest::prelude::*;

    /// A float format; `end` is the first code that is not finite.
    #[derive(Clone, Copy)]
    struct Format {
        bias: i32,
        mantissa: i32,
        end: u8,
        infinity: Option<u8>,
    }
    const E4M3: Format = Format {
        bias: 7,
        mantissa: 3,
        end: 0x7f,
        infinity: None,
    };
    const E5M2: Format = Format {
        bias: 15,
        mantissa: 2,
        end: 0x7c,
        infinity: Some(0x7c),
    };

    impl Format {
        /// Returns the absolute value of a code.
        fn number(self, code: u8) -> f64 {
            let fraction =
                f64::from(code & ((1 << self.mantissa) - 1)) / f64::from(1 << self.mantissa);
            match i32::from(code >> self.mantissa) {
                _ if Some(code) == self.infinity => f64::INFINITY,
                _ if code >= self.end => f64::NAN,
                0 => fraction * 2f64.powi(1 - self.bias),
                exponent => (1.0 + fraction) * 2f64.powi(exponent - self.bias),
            }
        }

        /// Returns the code nearest to a number by exhaustive search; ties go to the even code.
        fn nearest(self, x: f64) -> u8 {
            if x.is_nan() {
                return 0x7f;
            }
            let sign = if x.is_sign_negative() { 0x80 } else { 0 };
            let distance = |code: u8| (self.number(code) - x.abs().min(1e6)).abs();
            let codes = 0..self.end;
            let nearest = codes.min_by(|&a, &b| {
                distance(a)
                    .total_cmp(&distance(b))
                    .then((a & 1).cmp(&(b & 1)))
            });
            sign | nearest.unwrap_or(0)
        }
    }

    fn round(format: Format, x: f32) -> u8 {
        match format.infinity {
            None => E4m3::round(x).0,
            Some(_) => E5m2::round(x).0,
        }
    }
    fn widen(format: Format, code: u8) -> f32 {
        match format.infinity {
            None => E4m3(code).widen(),
            Some(_) => E5m2(code).widen(),
        }
    }

    #[test]
    fn all_256_codes_widen_exactly_and_round_back() {
        for format in [E4M3, E5M2] {
            for code in 0..=u8::MAX {
                let (got, abs) = (widen(format, code), format.number(code & 0x7f));
                if abs.is_nan() {
                    assert_eq!(got.to_bits(), 0x7fff_ffff, "{code:#04x}");
                    assert_eq!(round(format, got), 0x7f);
                    continue;
                }
                let want = if code > 0x7f { -abs } else { abs };
                assert_eq!(f64::from(got).to_bits(), want.to_bits(), "{code:#04x}");
                // Rounding never returns an infinity.
                let back = code.min(code & 0x80 | (format.end - 1));
                assert_eq!(round(format, got), back, "{code:#04x}");
                // f16 represents every number of both formats.
                assert_eq!(f16::round(got).widen().canonical().to_bits(), got.to_bits());
            }
        }
    }

    #[test]
    fn every_f16_rounds_to_the_nearest_code() {
        for format in [E4M3, E5M2] {
            for bits in 0..=u16::MAX {
                let x = f16::from_bits(bits).widen();
                assert_eq!(round(format, x), format.nearest(x.into()), "{bits:#06x}");
            }
        }
    }

    #[test]
    fn f32_ties_round_to_even_and_their_neighbors_to_nearest() {
        for format in [E4M3, E5M2] {
            for low in 0..format.end - 1 {
                let (a, b) = (format.number(low), format.number(low + 1));
                let tie = ((a + b) / 2.0) as f32;
                let step = |by: i32| f32::from_bits(tie.to_bits().wrapping_add_signed(by));
                let even = low + (low & 1);
                for (x, want) in [(step(-1), low), (tie, even), (step(1), low + 1)] {
                    assert_eq!(round(format, x), want, "{x:e}");
                    assert_eq!(round(format, -x), want | 0x80, "{x:e}");
                }
            }
        }
    }

    #[test]
    fn overflow_saturates_to_the_largest_number() {
        for x in [449.0, 464.0, 480.0, 1e30, f32::MAX, f32::INFINITY] {
            assert_eq!((E4m3::round(x).0, E4m3::round(-x).0), (0x7e, 0xfe));
        }
        for x in [61440.0, 65536.0, f32::MAX, f32::INFINITY] {
            assert_eq!((E5m2::round(x).0, E5m2::round(-x).0), (0x7b, 0xfb));
        }
        for nan in [0x7f80_0001, 0xffff_ffff] {
            let nan = f32::from_bits(nan);
            assert_eq!((E4m3::round(nan).0, E5m2::round(nan).0), (0x7f, 0x7f));
        }
        for zero in [-0.0, -1e-30, -f32::from_bits(1)] {
            assert_eq!((E4m3::round(zero).0, E5m2::round(zero).0), (0x80, 0x80));
        }
    }

    proptest! {
        #[test]
        fn any_f32_rounds_to_the_nearest_code(bits: u32, exponent in 100u32..146) {
            // Once with any exponent, once with an exponent in the range of both formats.
            for bits in [bits, bits & 0x807f_ffff | exponent << 23] {
                let x = f32::from_bits(bits);
                for format in [E4M3, E5M2] {
                    prop_assert_eq!(round(format, x), format.nearest(x.into()), "{:#010x}", bits);
                }
            }
        }
    }
}
