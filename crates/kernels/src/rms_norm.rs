//! `y = x / √(mean of x² + eps) · weight` over each row.

use crate::rows::{Given, Held, Lanes, RowOp, Rows, Stat, positive_eps};
use warpline_family::error::FamilyError;
use warpline_family::op::{Call, Param};
use warpline_family::{fields, words};
use warpline_ir::build::*;

/// The family.
pub type RmsNorm = Rows<Op>;

/// See [`RmsNorm`].
#[derive(Clone, Copy, Debug)]
pub struct Op;

fields! {
    /// The family's own part of the problem.
    pub struct Options {
        /// Added to the mean of squares
        pub eps: f64,
        /// Which vector scales each column
        pub affine: Affine,
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            eps: 1e-6,
            affine: Affine::Weight,
        }
    }
}

words! {
    /// Which vector scales each column.
    pub enum Affine {
        /// None
        None = "none",
        /// A weight
        Weight = "weight",
    }
}

/// The record of a part of a row: the sum of squares.
impl RowOp for Op {
    const NAME: &'static str = "rms-norm";
    const ABOUT: &'static str = "y = x / √(mean of x² + eps) · weight, row by row";
    const NOTHING: &'static [f32] = &[0.0];
    const SYMMETRIC: bool = true;
    const FLOPS: f64 = 4.0;
    type Options = Options;
    const OP: &'static str = "rms_norm";
    const PARAMS: &'static [Param] = &[
        Param::optional(
            "weight",
            "Scales each column: of the type and length of a row.",
        ),
        Param::number("eps", 1e-6, "Added to the mean of squares."),
    ];
    const EXAMPLE: &'static str = "\
>>> x = np.array([[3.0, 4.0]], dtype=np.float32)
>>> (warpline.rms_norm(x) * 12.5**0.5).round(4)
array([[3., 4.]], dtype=float32)";

    fn options(call: &Call<'_>) -> Result<Options, FamilyError> {
        let affine = match call.optional("weight") {
            None => Affine::None,
            Some(_) => Affine::Weight,
        };
        let eps = call.number("eps")?;
        Ok(Options { eps, affine })
    }

    fn check(options: &Options) -> Result<(), FamilyError> {
        positive_eps(options.eps)
    }

    fn vectors(options: &Options) -> &'static [&'static str] {
        match options.affine {
            Affine::None => &[],
            Affine::Weight => &["weight"],
        }
    }

    fn scalars(options: &Options) -> Vec<(&'static str, f32)> {
        vec![("eps", options.eps as f32)]
    }

    fn reference(options: &Options, x: &[f64], vectors: &[Vec<f64>]) -> Vec<(f64, f64)> {
        let mean = x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64;
        let r = 1.0 / (mean + f64::from(options.eps as f32)).sqrt();
        let column = |(i, x): (usize, &f64)| {
            let y = x * r * vectors.first().map_or(1.0, |w| w[i]);
            (y, y.abs())
        };
        x.iter().enumerate().map(column).collect()
    }

    fn base(_: &Held, _: Lanes) -> Reg<f32> {
        0.0f32.reg()
    }

    fn keep(_: Reg<f32>, x: Reg<f32>) -> Reg<f32> {
        x
    }

    fn measure(_: Reg<f32>, kept: &Held, lanes: Lanes) -> Stat {
        vec![lanes.sum(kept.sum(|x| x * x))]
    }

    fn merge(a: &Stat, b: &Stat) -> Stat {
        vec![a[0] + b[0]]
    }

    fn base_of(_: &Stat) -> Reg<f32> {
        0.0f32.reg()
    }

    fn factors(total: &Stat, _: Reg<f32>, given: &Given) -> Vec<Reg<f32>> {
        let mean = total[0] * recip(given.cols);
        vec![rsqrt(mean + given.scalars[0])]
    }

    fn output(factors: &[Reg<f32>], kept: Reg<f32>, vectors: &[Reg<f32>]) -> Reg<f32> {
        let y = kept * factors[0];
        vectors.first().map_or(y, |w| y * *w)
    }
}
