//! How close the hardware must come to the CPU meaning of an op.

use warpline_ir::{DType, Type};
use warpline_kernels::numbers;

/// How close values must be.
#[derive(Clone)]
pub enum Rule {
    /// Bit for bit.
    Exact,
    /// Within a bound on each number, which is a function of the CPU's.
    Within(Bound),
    /// Within a bound for each value.
    Bounds(Vec<f64>),
}

/// The most that a number may be off the CPU's.
pub type Bound = fn(DType, f64) -> f64;

impl Rule {
    /// Is the `i`th value close enough? Both are bits of the type.
    pub fn holds(&self, ty: Type, i: usize, expected: u64, got: u64) -> bool {
        if expected == got {
            return true;
        }
        let off = |bound: &dyn Fn(DType, f64) -> f64| {
            let (dtype, parts) = numbers_of(ty);
            (0..parts).all(|part| {
                let bits = |x: u64| x >> (8 * dtype.bytes() * part);
                let value = |x: u64| numbers::element_value(dtype, &bits(x).to_le_bytes());
                let (expected, got) = (value(expected), value(got));
                close(expected, got, bound(dtype, expected))
            })
        };
        match self {
            Rule::Exact => false,
            Rule::Within(bound) => off(bound),
            Rule::Bounds(all) => off(&|_, _| all.get(i).copied().unwrap_or(0.0)),
        }
    }
}

/// The element type of a register, and how many of them it holds.
fn numbers_of(ty: Type) -> (DType, usize) {
    match ty {
        Type::F16 => (DType::F16, 1),
        Type::F16x2 => (DType::F16, 2),
        Type::Bf16 => (DType::Bf16, 1),
        Type::Bf16x2 => (DType::Bf16, 2),
        _ => (DType::F32, 1),
    }
}

/// Are both NaN, the same infinity, or numbers within the bound?
fn close(expected: f64, got: f64, bound: f64) -> bool {
    if expected.is_nan() || got.is_nan() {
        return expected.is_nan() && got.is_nan();
    }
    expected == got || (expected - got).abs() <= bound
}

/// The bound of an op that states one, by its name in the table.
///
/// The op table has them in words; these are the same numbers, with the half
/// of a last place that the CPU's own rounding may be off. `operands` are what
/// `lg2` needs: its bound is absolute where the result is below one.
pub fn bound_of(op: &str) -> Option<Bound> {
    fn rounded(dtype: DType, x: f64) -> f64 {
        numbers::half_ulp(dtype, x)
    }
    fn ex2(dtype: DType, x: f64) -> f64 {
        let relative = match dtype {
            DType::F16 => 2f64.powf(-9.9),
            DType::Bf16 => 2f64.powi(-7),
            _ => 2f64.powi(-22),
        };
        // One last place if it is subnormal.
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
    fn exact_is_bit_for_bit() {
        assert!(Rule::Exact.holds(Type::F32, 0, 0x7fff_ffff, 0x7fff_ffff));
        assert!(!Rule::Exact.holds(Type::F32, 0, 0, 0x8000_0000));
    }

    #[test]
    fn a_bound_is_kept_by_both_halves() {
        let rule = Rule::Within(bound_of("ex2").unwrap());
        let one = 0x3c00_3c00;
        assert!(rule.holds(Type::F16x2, 0, one, one + 1));
        assert!(!rule.holds(Type::F16x2, 0, one, one + 4));
        assert!(!rule.holds(Type::F16x2, 0, one, one + (4 << 16)));
    }

    #[test]
    fn a_nan_is_close_to_a_nan_alone() {
        let rule = Rule::Bounds(vec![f64::INFINITY]);
        let (nan, one) = (0x7fc0_0000, 0x3f80_0000);
        assert!(rule.holds(Type::F32, 0, nan, 0x7fff_ffff));
        assert!(!rule.holds(Type::F32, 0, nan, one));
        assert!(!rule.holds(Type::F32, 0, one, nan));
    }

    #[test]
    fn an_infinity_is_no_large_number() {
        let rule = Rule::Within(bound_of("rcp").unwrap());
        let infinity = u64::from(f32::INFINITY.to_bits());
        assert!(!rule.holds(Type::F32, 0, infinity, u64::from(f32::MAX.to_bits())));
    }
}
