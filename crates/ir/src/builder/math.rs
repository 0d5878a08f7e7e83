//! Math functions, built from the hardware's approximations.

use super::flow::select;
use super::reg::{Float, Reg, Value};
use super::state::{caller_scope, emit};
use crate::ops::math::{Ex2, Lg2, Rcp, Rsqrt, Sqrt, Tanh};

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident = $op:ident;)*) => {$(
        $(#[$doc])*
        #[track_caller]
        pub fn $name(x: Reg<f32>) -> Reg<f32> {
            let dst = Reg::fresh();
            emit($op { dst: dst.id(), a: x.operand(), ftz: true });
            dst
        }
    )*};
}
unary! {
    /// Computes log₂ x approximately (`lg2.approx.ftz`).
    log2 = Lg2;
    /// Computes 1 / x approximately (`rcp.approx.ftz`).
    recip = Rcp;
    /// Computes 1 / √x approximately (`rsqrt.approx.ftz`).
    rsqrt = Rsqrt;
}

/// Computes 2ˣ approximately (`ex2.approx`; `f32` and `bf16` flush subnormals).
#[track_caller]
pub fn exp2<T: Float>(x: Reg<T>) -> Reg<T> {
    let dst = Reg::fresh();
    emit(Ex2 {
        ty: T::TYPE,
        dst: dst.id(),
        a: x.operand(),
        ftz: true,
    });
    dst
}

/// Computes √x, rounded to nearest (`sqrt.rn`).
#[track_caller]
pub fn sqrt(x: Reg<f32>) -> Reg<f32> {
    let dst = Reg::fresh();
    emit(Sqrt {
        dst: dst.id(),
        a: x.operand(),
    });
    dst
}

/// Computes tanh x approximately (`tanh.approx`; the relative error for `f32` is 2⁻¹¹).
#[track_caller]
pub fn tanh_approx<T: Float>(x: Reg<T>) -> Reg<T> {
    let dst = Reg::fresh();
    emit(Tanh {
        ty: T::TYPE,
        dst: dst.id(),
        a: x.operand(),
    });
    dst
}

/// Computes eˣ as 2^(x · log₂ e).
#[track_caller]
pub fn exp(x: Reg<f32>) -> Reg<f32> {
    let _caller = caller_scope();
    exp2(x * std::f32::consts::LOG2_E)
}

/// Computes 1 / (1 + e⁻ˣ).
#[track_caller]
pub fn sigmoid(x: Reg<f32>) -> Reg<f32> {
    let _caller = caller_scope();
    recip(exp2(x * -std::f32::consts::LOG2_E) + 1.0)
}

/// Computes x · sigmoid(x).
#[track_caller]
pub fn silu(x: Reg<f32>) -> Reg<f32> {
    let _caller = caller_scope();
    x * sigmoid(x)
}

/// Computes max(x, 0); a NaN stays a NaN.
#[track_caller]
pub fn relu(x: Reg<f32>) -> Reg<f32> {
    let _caller = caller_scope();
    select(x.lt(0.0), 0.0, x)
}
