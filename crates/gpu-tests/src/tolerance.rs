//! The tolerance of hardware results against the CPU semantics of an op.

use warpline_ir::{DType, Type};
use warpline_kernels::numbers;

/// The tolerance of a result.
#[derive(Clone)]
pub enum Tolerance {
    /// Bitwise equal.
    Exact,
    /// Within an error bound that depends on the expected number.
    ErrorBound(ErrorBound),
    /// Within an error bound for each value.
    PerValue(Vec<f64>),
}

/// Returns the maximum absolute error of an expected number.
pub type ErrorBound = fn(DType, f64) -> f64;

impl Tolerance {
    /// Returns whether the `i`th value is within tolerance. Both values are bits of the type.
    pub fn holds(&self, ty: Type, i: usize, expected: u64, got: u64) -> bool {
        if expected == got {
            return true;
        }
        let within = |bound: &dyn Fn(DType, f64) -> f64| {
            let (dtype, lanes) = element_type(ty);
            (0..lanes).all(|lane| {
                let bits = |x: u64| x >> (8 * dtype.bytes() * lane);
                let value = |x: u64| numbers::element_value(dtype, &bits(x).to_le_bytes());
                let (expected, got) = (value(expected), value(got));
                is_within(expected, got, bound(dtype, expected))
            })
        };
        match self {
            Tolerance::Exact => false,
            Tolerance::ErrorBound(bound) => within(bound),
            Tolerance::PerValue(bounds) => within(&|_, _| bounds.get(i).copied().unwrap_or(0.0)),
        }
    }
}

/// Returns the element type of a register and the number of its elements.
fn element_type(ty: Type) -> (DType, usize) {
    match ty {
        Type::F16 => (DType::F16, 1),
        Type::F16x2 => (DType::F16, 2),
        Type::Bf16 => (DType::Bf16, 1),
        Type::Bf16x2 => (DType::Bf16, 2),
        _ => (DType::F32, 1),
    }
}

/// Returns whether both are NaN, the same infinity, or numbers within the bound.
fn is_within(expected: f64, got: f64, bound: f64) -> bool {
    if expected.is_nan() || got.is_nan() {
        return expected.is_nan() && got.is_nan();
    }
    expected == got || (expected - got).abs() <= bound
}

/// Returns the error bound of an approximate op, by its name in the op table.
///
/// The op table states the same bounds. These add half an ulp for the rounding of the CPU result.
/// The bound of `lg2` is absolute for results below one.
pub fn error_bound_of(op: &str) -> Option<ErrorBound> {
    fn rounded(dtype: DType, x: f64) -> f64 {
        numbers::half_ulp(dtype, x)
    }
    fn ex2(dtype: DType, x: f64) -> f64 {
        let relative = match dtype {
            DType::F16 => 2f64.powf(-9.9),
            DType::Bf16 => 2f64.powi(-7),
            _ => 2f64.powi(-22),
        };
        // One ulp for subnormal results.
        rounded(dtype, x) + (x.abs() * relative).max(2.0 * rounded(dtype, 0.0))
    }
    fn lg2(dtype: DType, x: f64) -> f64 {
        rounded(dtype, x) + x.abs().max(1.0) * 2f64.powi(-22)
    }
    fn rcp(dtype: DType, x: f64) -> f64 {
        3.0 * rounded(dtype, x)
    }
    fn rsqrt(dtype: DType, x: f64) -> f64 {
        5.0 * rounded(dtype, x)
    }
    fn tanh(dtype: DType, x: f64) -> f64 {
        let bound = match dtype {
            DType::F16 => 2f64.powf(-10.987),
            DType::Bf16 => 2f64.powi(-8),
            _ => x.abs() * 2f64.powi(-11),
        };
        rounded(dtype, x) + bound
    }
    match op {
        "ex2" => Some(ex2),
        "lg2" => Some(lg2),
        "rcp" => Some(rcp),
        "rsqrt" => Some(rsqrt),
        "tanh" => Some(tanh),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_compares_bits() {
        assert!(Tolerance::Exact.holds(Type::F32, 0, 0x7fff_ffff, 0x7fff_ffff));
        assert!(!Tolerance::Exact.holds(Type::F32, 0, 0, 0x8000_0000));
    }

    #[test]
    fn a_bound_applies_to_both_halves() {
        let tolerance = Tolerance::ErrorBound(error_bound_of("ex2").unwrap());
        let one = 0x3c00_3c00;
        assert!(tolerance.holds(Type::F16x2, 0, one, one + 1));
        assert!(!tolerance.holds(Type::F16x2, 0, one, one + 4));
        assert!(!tolerance.holds(Type::F16x2, 0, one, one + (4 << 16)));
    }

    #[test]
    fn a_nan_matches_only_a_nan() {
        let tolerance = Tolerance::PerValue(vec![f64::INFINITY]);
        let (nan, one) = (0x7fc0_0000, 0x3f80_0000);
        assert!(tolerance.holds(Type::F32, 0, nan, 0x7fff_ffff));
        assert!(!tolerance.holds(Type::F32, 0, nan, one));
        assert!(!tolerance.holds(Type::F32, 0, one, nan));
    }

    #[test]
    fn an_infinity_does_not_match_a_large_number() {
        let tolerance = Tolerance::ErrorBound(error_bound_of("rcp").unwrap());
        let infinity = u64::from(f32::INFINITY.to_bits());
        assert!(!tolerance.holds(Type::F32, 0, infinity, u64::from(f32::MAX.to_bits())));
    }
}
