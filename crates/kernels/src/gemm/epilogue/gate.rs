//! The gate: `activation(gate) ∘ up`.

use warpline_ir::builder::*;

/// Multiplies the activated gate by up.
#[track_caller]
pub(super) fn apply(gate: Frag, up: &Frag) -> Frag {
    gate.zip(up, |x, y| x * y)
}

/// Returns the product of two values in float64 and its error bound.
pub(crate) fn reference((x, e): (f64, f64), (y, f): (f64, f64)) -> (f64, f64) {
    (x * y, e * (y.abs() + f) + x.abs() * f)
}
