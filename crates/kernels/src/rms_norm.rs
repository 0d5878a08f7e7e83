//! `y = x / √(mean of x² + eps) · weight` over each row.

use crate::rows::{OpParams, RowFamily, RowLanes, RowOp, RowRecord, RowValues, check_eps};
use warpline_family::error::FamilyError;
use warpline_family::op::{OpArgs, OpParam};
use warpline_family::{fields, keywords};
use warpline_ir::builder::*;

/// The RMSNorm family.
pub type RmsNorm = RowFamily<RmsNormOp>;

/// The op of [`RmsNorm`].
#[derive(Clone, Copy, Debug)]
pub struct RmsNormOp;

fields! {
    /// The options of RMSNorm.
    pub struct RmsNormOptions {
        /// Added to the mean of squares
        pub eps: f64,
        /// Per-column vectors: none, or weight
        pub affine: RmsNormAffine,
    }
}

impl Default for RmsNormOptions {
    fn default() -> Self {
        Self {
            eps: 1e-6,
            affine: RmsNormAffine::Weight,
        }
    }
}

keywords! {
    /// The per-column vectors.
    pub enum RmsNormAffine {
        /// No weight
        None = "none",
        /// Weight
        Weight = "weight",
    }
}

/// The record is the sum of squares.
impl RowOp for RmsNormOp {
    const NAME: &'static str = "rms-norm";
    const ABOUT: &'static str = "y = x / √(mean of x² + eps) · weight, row by row";
    const IDENTITY: &'static [f32] = &[0.0];
    const MERGE_IS_COMMUTATIVE: bool = true;
    const FLOPS: f64 = 4.0;
    type Options = RmsNormOptions;
    const OP: &'static str = "rms_norm";
    const PARAMS: &'static [OpParam] = &[
        OpParam::optional(
            "weight",
            "Scales each column; as long as a row. If it has another type than x, both are converted to f32.",
        ),
        OpParam::number("eps", 1e-6, "Added to the mean of squares."),
    ];
    const EXAMPLE: &'static str = "\
>>> x = np.array([[3.0, 4.0]], dtype=np.float32)
>>> (warpline.rms_norm(x) * 12.5**0.5).round(4)
array([[3., 4.]], dtype=float32)";

    fn options(call: &OpArgs<'_>) -> Result<RmsNormOptions, FamilyError> {
        let affine = match call.optional("weight") {
            None => RmsNormAffine::None,
            Some(_) => RmsNormAffine::Weight,
        };
        let eps = call.number("eps")?;
        Ok(RmsNormOptions { eps, affine })
    }

    fn check(options: &RmsNormOptions) -> Result<(), FamilyError> {
        check_eps(options.eps)
    }

    fn vectors(options: &RmsNormOptions) -> &'static [&'static str] {
        match options.affine {
            RmsNormAffine::None => &[],
            RmsNormAffine::Weight => &["weight"],
        }
    }

    fn scalars(options: &RmsNormOptions) -> Vec<(&'static str, f32)> {
        vec![("eps", options.eps as f32)]
    }

    fn reference(options: &RmsNormOptions, x: &[f64], vectors: &[Vec<f64>]) -> Vec<(f64, f64)> {
        let mean = x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64;
        let r = 1.0 / (mean + f64::from(options.eps as f32)).sqrt();
        let column = |(i, x): (usize, &f64)| {
            let y = x * r * vectors.first().map_or(1.0, |w| w[i]);
            (y, y.abs())
        };
        x.iter().enumerate().map(column).collect()
    }

    fn shift(_: &RowValues, _: RowLanes) -> Reg<f32> {
        0.0f32.reg()
    }

    fn transform(_: Reg<f32>, x: Reg<f32>) -> Reg<f32> {
        x
    }

    fn stats(_: Reg<f32>, transformed: &RowValues, lanes: RowLanes) -> RowRecord {
        vec![lanes.sum(transformed.sum(|x| x * x))]
    }

    fn merge(a: &RowRecord, b: &RowRecord) -> RowRecord {
        vec![a[0] + b[0]]
    }

    fn shift_of(_: &RowRecord) -> Reg<f32> {
        0.0f32.reg()
    }

    fn factors(total: &RowRecord, _: Reg<f32>, params: &OpParams) -> Vec<Reg<f32>> {
        let mean = total[0] * recip(params.cols);
        vec![rsqrt(mean + params.scalars[0])]
    }

    fn output(factors: &[Reg<f32>], transformed: Reg<f32>, vectors: &[Reg<f32>]) -> Reg<f32> {
        let y = transformed * factors[0];
        vectors.first().map_or(y, |w| y * *w)
    }
}
