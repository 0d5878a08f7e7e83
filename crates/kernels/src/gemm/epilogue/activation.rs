//! The activation function: device code, float64 value and error bound.

use crate::gemm::problem::Activation;
use warpline_ir::builder::*;

/// √(2/π), the linear coefficient of gelu-tanh.
const GELU_LINEAR: f64 = 0.797_884_560_802_865_4;
/// The cubic coefficient of gelu-tanh.
const GELU_CUBIC: f64 = 0.044_715;

impl Activation {
    /// Applies the function to a register.
    #[track_caller]
    pub(crate) fn apply(self, x: Reg<f32>) -> Reg<f32> {
        match self {
            Activation::None => x,
            Activation::Relu => relu(x),
            Activation::GeluErf => gelu_erf(x),
            Activation::GeluTanh => gelu_tanh(x),
            Activation::Silu => silu(x),
            Activation::Sigmoid => sigmoid(x),
        }
    }

    /// Returns whether the function takes many instructions per value.
    pub(in crate::gemm) fn is_expensive(self) -> bool {
        !matches!(self, Activation::None | Activation::Relu)
    }

    /// Returns the function in float64.
    pub(crate) fn value(self, x: f64) -> f64 {
        match self {
            Activation::None => x,
            Activation::Relu if x.is_nan() => x,
            Activation::Relu => x.max(0.0),
            Activation::GeluErf => x * 0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2),
            Activation::GeluTanh => {
                let u = GELU_LINEAR * (x + GELU_CUBIC * x * x * x);
                x / (1.0 + (-2.0 * u).exp())
            }
            Activation::Silu => x / (1.0 + (-x).exp()),
            Activation::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        }
    }

    /// Returns the activated value in float64 and its error bound.
    pub(in crate::gemm) fn reference(self, (x, error): (f64, f64)) -> (f64, f64) {
        (self.value(x), self.error(x, error))
    }

    /// Returns the error of the result for an argument `x` with error `e`, including the error of the
    /// function: a few f32 ulps, and 1.5·10⁻⁷ of the polynomial.
    pub(crate) fn error(self, x: f64, e: f64) -> f64 {
        match self {
            Activation::None | Activation::Relu => e,
            Activation::Sigmoid => 0.25 * e + 1e-6,
            // The slopes of gelu-erf, gelu-tanh and silu are at most 1.13, 1.13 and 1.1.
            _ => 1.13 * e + 1e-6 * x.abs() + 1e-9,
        }
    }
}

/// Returns x · Φ(x) in the tanh approximation, as x · sigmoid(2u): 1 + tanh u would cancel.
#[track_caller]
fn gelu_tanh(x: Reg<f32>) -> Reg<f32> {
    let log2_e = std::f64::consts::LOG2_E;
    let (linear, cubic) = (
        -2.0 * GELU_LINEAR * log2_e,
        -2.0 * GELU_LINEAR * GELU_CUBIC * log2_e,
    );
    let u = x * (x * x).fma(cubic as f32, linear as f32);
    x * recip(exp2(u) + 1.0)
}

/// Returns x · Φ(x) from Φ(−|x|) = ½ · p(t) · e^(−x²/2), t = 1 / (1 + 0.3275911 · |x|/√2)
/// (Abramowitz and Stegun 7.1.26, error at most 0.75·10⁻⁷). This form does not cancel.
#[track_caller]
fn gelu_erf(x: Reg<f32>) -> Reg<f32> {
    const P: f64 = 0.327_591_1 * std::f64::consts::FRAC_1_SQRT_2;
    const A: [f64; 5] = [
        0.254_829_592,
        -0.284_496_736,
        1.421_413_741,
        -1.453_152_027,
        1.061_405_429,
    ];
    let half = |a: f64| (0.5 * a) as f32;
    let t = recip(x.abs().fma(P as f32, 1.0));
    let p = t.fma(half(A[4]), half(A[3]));
    let p = t.fma(p, half(A[2]));
    let p = t.fma(p, half(A[1]));
    let p = t.fma(p, half(A[0]));
    let e = exp2(x * x * (-0.5 * std::f64::consts::LOG2_E) as f32);
    let tail = p * t * e;
    x * select(x.lt(0.0), tail, 1.0f32.reg() - tail)
}
