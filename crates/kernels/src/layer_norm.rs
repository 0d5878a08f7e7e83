//! `y = (x - mean) / √(variance + eps) · weight + bias` over each row.
//! See [`crate::rows`] for the derivation of the merge.

use crate::rows::{OpParams, RowFamily, RowLanes, RowOp, RowRecord, RowValues, check_eps};
use warpline_family::error::FamilyError;
use warpline_family::op::{OpArgs, OpParam};
use warpline_family::{fields, keywords};
use warpline_ir::builder::*;

/// The LayerNorm family.
pub type LayerNorm = RowFamily<LayerNormOp>;

/// The op of [`LayerNorm`].
#[derive(Clone, Copy, Debug)]
pub struct LayerNormOp;

fields! {
    /// The options of LayerNorm.
    pub struct LayerNormOptions {
        /// Added to the variance
        pub eps: f64,
        /// Per-column vectors: none, weight, or weight and bias
        pub affine: LayerNormAffine,
    }
}

impl Default for LayerNormOptions {
    fn default() -> Self {
        Self {
            eps: 1e-5,
            affine: LayerNormAffine::WeightBias,
        }
    }
}

keywords! {
    /// The per-column vectors.
    pub enum LayerNormAffine {
        /// No weight and no bias
        None = "none",
        /// Weight only
        Weight = "weight",
        /// Weight and bias
        WeightBias = "weight-bias",
    }
}

/// The record is (count, mean, M₂, shift). Mean and M₂, the sum of squares about the mean, are those
/// of `x - shift`.
///
/// The shift is a value of the row, so the mean of the shifted values is as small as their spread: a
/// large mean costs no precision. Chan's formula merges two records.
impl RowOp for LayerNormOp {
    const NAME: &'static str = "layer-norm";
    const ABOUT: &'static str = "y = (x - mean) / √(variance + eps) · weight + bias, row by row";
    const IDENTITY: &'static [f32] = &[0.0, 0.0, 0.0, 0.0];
    const MERGE_IS_COMMUTATIVE: bool = false;
    const FLOPS: f64 = 8.0;
    type Options = LayerNormOptions;
    const OP: &'static str = "layer_norm";
    const PARAMS: &'static [OpParam] = &[
        OpParam::optional(
            "weight",
            "Scales each column; as long as a row. If it has another type than x, both are converted to f32.",
        ),
        OpParam::optional(
            "bias",
            "Added to each column; type and length as weight. Requires weight.",
        ),
        OpParam::number("eps", 1e-5, "Added to the variance."),
    ];
    const EXAMPLE: &'static str = "\
>>> x = np.array([[1.0, 3.0]], dtype=np.float32)
>>> warpline.layer_norm(x, eps=0.0)
array([[-1.,  1.]], dtype=float32)";

    fn options(call: &OpArgs<'_>) -> Result<LayerNormOptions, FamilyError> {
        let affine = match (call.optional("weight"), call.optional("bias")) {
            (None, None) => LayerNormAffine::None,
            (Some(_), None) => LayerNormAffine::Weight,
            (Some(_), Some(_)) => LayerNormAffine::WeightBias,
            (None, Some(_)) => {
                return call.reject("bias requires weight, which is missing".into());
            }
        };
        let eps = call.number("eps")?;
        Ok(LayerNormOptions { eps, affine })
    }

    fn check(options: &LayerNormOptions) -> Result<(), FamilyError> {
        check_eps(options.eps)
    }

    fn vectors(options: &LayerNormOptions) -> &'static [&'static str] {
        match options.affine {
            LayerNormAffine::None => &[],
            LayerNormAffine::Weight => &["weight"],
            LayerNormAffine::WeightBias => &["weight", "bias"],
        }
    }

    fn scalars(options: &LayerNormOptions) -> Vec<(&'static str, f32)> {
        vec![("eps", options.eps as f32)]
    }

    fn reference(options: &LayerNormOptions, x: &[f64], vectors: &[Vec<f64>]) -> Vec<(f64, f64)> {
        let n = x.len() as f64;
        let mean = x.iter().sum::<f64>() / n;
        let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
        let r = 1.0 / (variance + f64::from(options.eps as f32)).sqrt();
        let column = |(i, x): (usize, &f64)| {
            let w = vectors.first().map_or(1.0, |w| w[i]);
            let b = vectors.get(1).map_or(0.0, |b| b[i]);
            let normalized = (x - mean) * r;
            (
                normalized * w + b,
                w.abs() * (normalized.abs() + 1.0) + b.abs(),
            )
        };
        x.iter().enumerate().map(column).collect()
    }

    fn shift(values: &RowValues, lanes: RowLanes) -> Reg<f32> {
        lanes.first(values.units[0][0])
    }

    fn transform(shift: Reg<f32>, x: Reg<f32>) -> Reg<f32> {
        x - shift
    }

    fn stats(shift: Reg<f32>, transformed: &RowValues, lanes: RowLanes) -> RowRecord {
        let count = lanes.sum(transformed.count());
        let mean = lanes.sum(transformed.sum(|x| x)) * recip(count.max(1.0));
        let m2 = lanes.sum(transformed.sum(|x| (x - mean) * (x - mean)));
        vec![count, mean, m2, shift]
    }

    fn merge(a: &RowRecord, b: &RowRecord) -> RowRecord {
        let count = a[0] + b[0];
        let fraction_b = b[0] * recip(count.max(1.0));
        let delta = (b[3] - a[3]) + (b[1] - a[1]);
        let mean = delta.fma(fraction_b, a[1]);
        let m2 = (delta * delta * a[0]).fma(fraction_b, a[2] + b[2]);
        vec![count, mean, m2, a[3]]
    }

    fn shift_of(total: &RowRecord) -> Reg<f32> {
        total[3]
    }

    fn factors(total: &RowRecord, shift: Reg<f32>, params: &OpParams) -> Vec<Reg<f32>> {
        let mean = (total[3] - shift) + total[1];
        let variance = total[2] * recip(params.cols);
        vec![mean, rsqrt(variance + params.scalars[0])]
    }

    fn output(factors: &[Reg<f32>], transformed: Reg<f32>, vectors: &[Reg<f32>]) -> Reg<f32> {
        let normalized = (transformed - factors[0]) * factors[1];
        match vectors {
            [w, b] => normalized.fma(*w, *b),
            [w] => normalized * *w,
            _ => normalized,
        }
    }
}
