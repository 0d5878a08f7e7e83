//! Element values of every type, rounding, and random numbers.

use half::{bf16, f16};
use std::ops::RangeInclusive;
use warpline_ir::DType;

/// Decodes one little-endian element.
pub fn element_value(dtype: DType, b: &[u8]) -> f64 {
    fn bytes<const N: usize>(b: &[u8]) -> [u8; N] {
        let mut array = [0; N];
        array.copy_from_slice(&b[..N]);
        array
    }
    match dtype {
        DType::U8 => f64::from(b[0]),
        DType::U16 => f64::from(u16::from_le_bytes(bytes(b))),
        DType::U32 => f64::from(u32::from_le_bytes(bytes(b))),
        DType::I32 => f64::from(i32::from_le_bytes(bytes(b))),
        DType::U64 => u64::from_le_bytes(bytes(b)) as f64,
        DType::I64 => i64::from_le_bytes(bytes(b)) as f64,
        DType::F32 | DType::Tf32 => f64::from(f32::from_le_bytes(bytes(b))),
        DType::F16 => f16::from_le_bytes(bytes(b)).to_f64(),
        DType::Bf16 => bf16::from_le_bytes(bytes(b)).to_f64(),
        DType::E4m3 | DType::E5m2 => from_fp8(dtype, b[0]),
    }
}

/// Returns the exponent bits, mantissa bits, bias and largest finite value of an fp8 type.
fn fp8_shape(dtype: DType) -> (i32, i32, i32, f64) {
    match dtype {
        DType::E5m2 => (5, 2, 15, 57344.0),
        _ => (4, 3, 7, 448.0),
    }
}

/// Decodes an fp8 code.
///
/// ```
/// use warpline_ir::DType;
/// assert_eq!(warpline_family::numbers::from_fp8(DType::E4m3, 0x7e), 448.0);
/// assert!(warpline_family::numbers::from_fp8(DType::E4m3, 0x7f).is_nan());
/// ```
pub fn from_fp8(dtype: DType, code: u8) -> f64 {
    let (exponent_bits, mantissa_bits, bias, _) = fp8_shape(dtype);
    let sign = if code & 0x80 == 0 { 1.0 } else { -1.0 };
    let exponent = i32::from(code & 0x7f) >> mantissa_bits;
    let mantissa = f64::from(code & ((1 << mantissa_bits) - 1)) / f64::from(1 << mantissa_bits);
    let max_exponent = (1 << exponent_bits) - 1;
    if dtype == DType::E5m2 && exponent == max_exponent {
        return if mantissa == 0.0 {
            sign * f64::INFINITY
        } else {
            f64::NAN
        };
    }
    if code & 0x7f == 0x7f {
        return f64::NAN;
    }
    match exponent {
        0 => sign * mantissa * 2f64.powi(1 - bias),
        _ => sign * (1.0 + mantissa) * 2f64.powi(exponent - bias),
    }
}

/// Rounds to the nearest fp8 code, ties to even, and saturates to the largest finite value.
///
/// ```
/// use warpline_ir::DType;
/// use warpline_family::numbers::{from_fp8, to_fp8};
/// assert_eq!(from_fp8(DType::E4m3, to_fp8(DType::E4m3, 3.1)), 3.0);
/// assert_eq!(from_fp8(DType::E5m2, to_fp8(DType::E5m2, -1e9)), -57344.0);
/// ```
pub fn to_fp8(dtype: DType, x: f64) -> u8 {
    let (_, mantissa_bits, bias, max) = fp8_shape(dtype);
    if x.is_nan() {
        return 0x7f;
    }
    let sign = if x.is_sign_negative() { 0x80 } else { 0 };
    let x = x.abs().min(max);
    // Subnormal numbers have the spacing of the smallest normal binade.
    let min_exponent = 1 - bias;
    let exponent = ((x.to_bits() >> 52) as i32 - 1023).max(min_exponent);
    let steps = (x / 2f64.powi(exponent - mantissa_bits)).round_ties_even();
    // `steps` includes the leading bit of a normal number, which a code does not store: it adds 1 to
    // the exponent field, so the field starts at 0 for `min_exponent`. A subnormal number has no such
    // bit. A carry of the rounding also adds 1.
    sign | (((exponent - min_exponent) << mantissa_bits) as u8 + steps as u8)
}

/// Returns the dot product and the sum of magnitudes; eight partial sums let the compiler vectorize.
pub fn dot(x: &[f64], y: &[f64]) -> (f64, f64) {
    const LANES: usize = 8;
    let (mut sums, mut sizes) = ([0.0; LANES], [0.0; LANES]);
    let (xs, ys) = (x.chunks_exact(LANES), y.chunks_exact(LANES));
    let rest = xs.remainder().iter().zip(ys.remainder());
    let rest: Vec<f64> = rest.map(|(x, y)| x * y).collect();
    for (x, y) in xs.zip(ys) {
        for i in 0..LANES {
            let product = x[i] * y[i];
            sums[i] += product;
            sizes[i] += product.abs();
        }
    }
    let sum = sums.iter().chain(&rest).sum();
    let size = sizes.iter().copied().chain(rest.iter().map(|x| x.abs()));
    (sum, size.sum())
}

/// Adds a row times `weight` to the values, and its magnitudes times `error` to the tolerances. Each pair
/// is a value and its tolerance.
pub fn add_row(values: &mut [(f64, f64)], row: &[f64], weight: f64, error: f64) {
    for ((value, tolerance), x) in values.iter_mut().zip(row) {
        *value += weight * x;
        *tolerance += error * x.abs();
    }
}

/// Returns half the spacing of an element type at `x`: the largest error of rounding to nearest.
pub fn half_ulp(dtype: DType, x: f64) -> f64 {
    let (mantissa_bits, min_exponent) = match dtype {
        DType::F32 => (23, -126),
        DType::Tf32 => (10, -126),
        DType::F16 => (10, -14),
        DType::Bf16 => (7, -126),
        DType::E4m3 => (3, -6),
        DType::E5m2 => (2, -14),
        _ => return 0.5,
    };
    if x == 0.0 || !x.is_finite() {
        return 2f64.powi(min_exponent - mantissa_bits - 1);
    }
    let exponent = (x.abs().log2().floor() as i32).max(min_exponent);
    2f64.powi(exponent - mantissa_bits - 1)
}

/// A random number generator. The same seed gives the same numbers on every machine.
#[derive(Clone, Debug)]
pub struct Random(u64);

/// The increment of the SplitMix64 state.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Random {
    /// Returns the generator for a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed ^ STEP)
    }

    /// Draws 64 random bits (SplitMix64).
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Skips `draws` draws of 64 bits. A uniform number takes one draw, a normal number two.
    ///
    /// ```
    /// use warpline_family::numbers::Random;
    /// let (mut one, mut other) = (Random::new(7), Random::new(7));
    /// (one.uniform(), one.normal());
    /// other.skip(3);
    /// assert_eq!(one.bits(), other.bits());
    /// ```
    pub fn skip(&mut self, draws: u64) {
        self.0 = self.0.wrapping_add(STEP.wrapping_mul(draws));
    }

    /// Draws a uniform number in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Draws from N(0, 1) by the Box–Muller method.
    pub fn normal(&mut self) -> f64 {
        let u = (1.0 - self.uniform()).ln() * -2.0;
        u.sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Draws a whole number below `n`, which is not 0.
    pub fn below(&mut self, n: u64) -> u64 {
        self.bits() % n
    }

    /// Returns `true` with a chance of `percent` percent.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Draws one of the values, which must not be empty.
    pub fn pick<T: Clone>(&mut self, values: &[T]) -> T {
        values[self.below(values.len() as u64) as usize].clone()
    }

    /// Draws an extent from a range that is not empty: its ends, small numbers, powers of two and
    /// their neighbors, multiples of 16, and any order of magnitude.
    ///
    /// ```
    /// use warpline_family::numbers::Random;
    /// let mut random = Random::new(1);
    /// let extents: Vec<u64> = (0..300).map(|_| random.extent(1..=1 << 30)).collect();
    /// assert!(extents.contains(&1) && extents.contains(&(1 << 30)));
    /// assert!(extents.iter().any(|n| *n > 1000 && n % 2 == 1));
    /// ```
    pub fn extent(&mut self, range: RangeInclusive<u64>) -> u64 {
        let (first, last) = (*range.start(), *range.end());
        // Every order of magnitude of the range is equally likely.
        let log2 = |n: u64| n.max(1).ilog2();
        let magnitude = |random: &mut Self| {
            let all = u64::from(log2(last) - log2(first)) + 1;
            1u64 << (u64::from(log2(first)) + random.below(all))
        };
        let extent = match self.below(16) {
            0 => first,
            1 => last,
            2..5 => first.saturating_add(self.below(20)),
            5..8 => magnitude(self) + self.below(3) - 1,
            case => {
                let low = magnitude(self);
                let extent = low + self.below(low);
                if case < 11 {
                    extent.next_multiple_of(16)
                } else {
                    extent
                }
            }
        };
        extent.clamp(first, last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fp8_rounds_to_the_nearest_code_and_ties_to_even() {
        for dtype in [DType::E4m3, DType::E5m2] {
            let finite = |&c: &u8| from_fp8(dtype, c).is_finite();
            let codes: Vec<u8> = (0..=0x7f).filter(finite).collect();
            for (&c, &next) in codes.iter().zip(&codes[1..]) {
                let (lo, hi) = (from_fp8(dtype, c), from_fp8(dtype, next));
                let middle = (lo + hi) / 2.0;
                let even = if c % 2 == 0 { c } else { next };
                for (x, code) in [
                    (lo, c),
                    (hi, next),
                    (middle, even),
                    (middle * (1.0 - 1e-9), c),
                    (middle * (1.0 + 1e-9), next),
                ] {
                    assert_eq!(to_fp8(dtype, x), code, "{dtype} of {x}");
                    assert_eq!(to_fp8(dtype, -x), 0x80 | code, "{dtype} of -{x}");
                }
            }
            let last = codes[codes.len() - 1];
            for x in [1e6, f64::INFINITY] {
                assert_eq!(to_fp8(dtype, x), last);
                assert_eq!(to_fp8(dtype, -x), 0x80 | last);
            }
            assert!(from_fp8(dtype, to_fp8(dtype, f64::NAN)).is_nan());
            assert_eq!(to_fp8(dtype, f64::MIN_POSITIVE), 0);
        }
    }
}
