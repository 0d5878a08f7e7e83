//! `y = softmax(x)` over each row, with one exponential per element.
//! See [`crate::rows`] for the derivation.

use crate::rows::{OpParams, RowFamily, RowLanes, RowOp, RowRecord, RowValues};
use std::f32::consts::LOG2_E;
use warpline_family::error::FamilyError;
use warpline_family::field::NoFields;
use warpline_family::op::{OpArgs, OpParam};
use warpline_ir::builder::*;

/// The softmax family.
pub type Softmax = RowFamily<SoftmaxOp>;

/// The op of [`Softmax`].
#[derive(Clone, Copy, Debug)]
pub struct SoftmaxOp;

/// Softmax has no options.
pub type SoftmaxOptions = NoFields;

/// The record is (maximum, sum of `exp(x - maximum)`).
///
/// Each warp subtracts the maximum of its own values. One factor per thread corrects for the maximum
/// of the row, so that no value needs a second exponential.
impl RowOp for SoftmaxOp {
    const NAME: &'static str = "softmax";
    const ABOUT: &'static str = "y = exp(x - max) / Σ exp(x - max), row by row";
    const IDENTITY: &'static [f32] = &[f32::NEG_INFINITY, 0.0];
    const MERGE_IS_COMMUTATIVE: bool = true;
    const FLOPS: f64 = 5.0;
    type Options = SoftmaxOptions;
    const OP: &'static str = "softmax";
    const PARAMS: &'static [OpParam] = &[OpParam::integer(
        "dim",
        -1,
        "The dimension to normalize over; x is copied unless it is the last one.",
    )];
    const EXAMPLE: &'static str = "\
>>> x = np.array([[0.0, np.log(3.0)]], dtype=np.float32)
>>> warpline.softmax(x).round(6)
array([[0.25, 0.75]], dtype=float32)";

    fn options(call: &OpArgs<'_>) -> Result<SoftmaxOptions, FamilyError> {
        let (dim, rank) = (call.integer("dim")?, call.tensor("x")?.shape.len() as i64);
        match dim {
            -1 => Ok(NoFields),
            n if n == rank - 1 => Ok(NoFields),
            n => {
                let text = format!(
                    "dim must be the last dimension (-1 or {}), not {n}",
                    rank - 1
                );
                match (-rank..rank).contains(&n) {
                    true => call.unsupported_layout(text),
                    false => call.reject(text),
                }
            }
        }
    }

    fn reference(_: &SoftmaxOptions, x: &[f64], _: &[Vec<f64>]) -> Vec<(f64, f64)> {
        // As in torch: a row with NaN or +∞, or of only -∞, is NaN.
        let max = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let exp: Vec<f64> = x.iter().map(|x| (x - max).exp()).collect();
        let sum: f64 = exp.iter().sum();
        exp.iter().map(|e| (e / sum, 1.0 / sum)).collect()
    }

    fn shift(values: &RowValues, lanes: RowLanes) -> Reg<f32> {
        lanes.max(values.max())
    }

    fn transform(shift: Reg<f32>, x: Reg<f32>) -> Reg<f32> {
        exp2((x - finite(shift)) * LOG2_E)
    }

    fn stats(shift: Reg<f32>, transformed: &RowValues, lanes: RowLanes) -> RowRecord {
        vec![shift, lanes.sum(transformed.sum(|e| e))]
    }

    fn merge(a: &RowRecord, b: &RowRecord) -> RowRecord {
        let max = a[0].max(b[0]);
        let rescaled = |s: &RowRecord| s[1] * rescale(s[0], max);
        vec![max, rescaled(a) + rescaled(b)]
    }

    fn shift_of(total: &RowRecord) -> Reg<f32> {
        total[0]
    }

    fn factors(total: &RowRecord, shift: Reg<f32>, _: &OpParams) -> Vec<Reg<f32>> {
        vec![rescale(shift, total[0]) * recip(total[1])]
    }

    fn output(factors: &[Reg<f32>], transformed: Reg<f32>, _: &[Reg<f32>]) -> Reg<f32> {
        transformed * factors[0]
    }
}

/// Returns the maximum to subtract: 0 for -∞, since -∞ - (-∞) is NaN.
#[track_caller]
fn finite(max: Reg<f32>) -> Reg<f32> {
    select(max.eq(f32::NEG_INFINITY), 0.0f32, max)
}

/// Returns `exp(from - to)`, the factor that rescales a sum from maximum `from` to maximum `to`.
#[track_caller]
fn rescale(from: Reg<f32>, to: Reg<f32>) -> Reg<f32> {
    exp2((from - finite(to)) * LOG2_E)
}
