//! `y = softmax(x)` over each row, by one exponential for each element.

use crate::rows::{Given, Held, Lanes, RowOp, Rows, Stat};
use std::f32::consts::LOG2_E;
use warpline_family::error::FamilyError;
use warpline_family::field::NoFields;
use warpline_family::op::{Call, Param};
use warpline_ir::build::*;

/// The family.
pub type Softmax = Rows<Op>;

/// See [`Softmax`].
#[derive(Clone, Copy, Debug)]
pub struct Op;

/// Softmax has no options of its own.
pub type Options = NoFields;

/// The record of a part of a row: its maximum, and the sum of `exp(x - maximum)`.
///
/// Each warp subtracts the maximum of its own values and corrects by one
/// factor when the row's is known, so that no value meets a second exponential.
impl RowOp for Op {
    const NAME: &'static str = "softmax";
    const ABOUT: &'static str = "y = exp(x - max) / Σ exp(x - max), row by row";
    const NOTHING: &'static [f32] = &[f32::NEG_INFINITY, 0.0];
    const SYMMETRIC: bool = true;
    const FLOPS: f64 = 5.0;
    type Options = Options;
    const OP: &'static str = "softmax";
    const PARAMS: &'static [Param] = &[Param::integer(
        "dim",
        -1,
        "The dimension that is summed over: the last one.",
    )];
    const EXAMPLE: &'static str = "\
>>> x = np.array([[0.0, np.log(3.0)]], dtype=np.float32)
>>> warpline.softmax(x).round(6)
array([[0.25, 0.75]], dtype=float32)";

    fn options(call: &Call<'_>) -> Result<Options, FamilyError> {
        let (dim, rank) = (call.integer("dim")?, call.tensor("x")?.shape.len() as i64);
        match dim {
            -1 => Ok(NoFields),
            n if n == rank - 1 => Ok(NoFields),
            n => call.refuse(format!(
                "dim is the last dimension (-1 or {}), not {n}",
                rank - 1
            )),
        }
    }

    fn reference(_: &Options, x: &[f64], _: &[Vec<f64>]) -> Vec<(f64, f64)> {
        // As torch does, a row with a NaN or +∞, or with nothing but -∞, is NaN throughout.
        let max = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let exp: Vec<f64> = x.iter().map(|x| (x - max).exp()).collect();
        let sum: f64 = exp.iter().sum();
        exp.iter().map(|e| (e / sum, 1.0 / sum)).collect()
    }

    fn base(held: &Held, lanes: Lanes) -> Reg<f32> {
        lanes.max(held.max())
    }

    fn keep(base: Reg<f32>, x: Reg<f32>) -> Reg<f32> {
        exp2((x - finite(base)) * LOG2_E)
    }

    fn measure(base: Reg<f32>, kept: &Held, lanes: Lanes) -> Stat {
        vec![base, lanes.sum(kept.sum(|e| e))]
    }

    fn merge(a: &Stat, b: &Stat) -> Stat {
        let max = a[0].max(b[0]);
        let part = |s: &Stat| s[1] * rescale(s[0], max);
        vec![max, part(a) + part(b)]
    }

    fn base_of(total: &Stat) -> Reg<f32> {
        total[0]
    }

    fn factors(total: &Stat, base: Reg<f32>, _: &Given) -> Vec<Reg<f32>> {
        vec![rescale(base, total[0]) * recip(total[1])]
    }

    fn output(factors: &[Reg<f32>], kept: Reg<f32>, _: &[Reg<f32>]) -> Reg<f32> {
        kept * factors[0]
    }
}

/// A maximum to subtract: -∞, the maximum of nothing, would give NaN.
#[track_caller]
fn finite(max: Reg<f32>) -> Reg<f32> {
    select(max.eq(f32::NEG_INFINITY), 0.0f32, max)
}

/// What turns values kept against `from` into values kept against `to`.
#[track_caller]
fn rescale(from: Reg<f32>, to: Reg<f32>) -> Reg<f32> {
    exp2((from - finite(to)) * LOG2_E)
}
