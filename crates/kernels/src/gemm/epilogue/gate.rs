//! The gate: `activation(gate) ∘ up`.

use warpline_ir::build::*;

/// Multiplies the activated gate by up.
#[track_caller]
pub(super) fn apply(gate: Frag, up: &Frag) -> Frag {
    gate.zip(up, |x, y| x * y)
}

/// The product of two values in float64, and its error.
pub(crate) fn reference((x, e): (f64, f64), (y, f): (f64, f64)) -> (f64, f64) {
    (x * y, e * (y.abs() + f) + x.abs() * f)
}
