//! `y = (x - mean) / √(variance + eps) · weight + bias` over each row.

use crate::rows::{Given, Held, Lanes, RowOp, Rows, Stat, positive_eps};
use warpline_family::error::FamilyError;
use warpline_family::op::{Call, Param};
use warpline_family::{fields, words};
use warpline_ir::build::*;

/// The family.
pub type LayerNorm = Rows<Op>;

/// See [`LayerNorm`].
#[derive(Clone, Copy, Debug)]
pub struct Op;

fields! {
    /// The family's own part of the problem.
    pub struct Options {
        /// Added to the variance
        pub eps: f64,
        /// Which vectors scale and shift each column
        pub affine: Affine,
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            eps: 1e-5,
            affine: Affine::WeightBias,
        }
    }
}

words! {
    /// Which vectors scale and shift each column.
    pub enum Affine {
        /// Neither
        None = "none",
        /// A weight
        Weight = "weight",
        /// A weight and a bias
        WeightBias = "weight-bias",
    }
}

/// The record of a part of a row: how many values, their mean and the sum of
/// squares about it, and the base that values and mean are taken against.
///
/// The base is a value of the row, so the mean of what is kept is of the size
/// of the spread and not of the values: a large mean costs no digits. Sums of
/// squares are always about the part's own mean (Chan's merge).
impl RowOp for Op {
    const NAME: &'static str = "layer-norm";
    const ABOUT: &'static str = "y = (x - mean) / √(variance + eps) · weight + bias, row by row";
    const NOTHING: &'static [f32] = &[0.0, 0.0, 0.0, 0.0];
    const SYMMETRIC: bool = false;
    const FLOPS: f64 = 8.0;
    type Options = Options;
    const OP: &'static str = "layer_norm";
    const PARAMS: &'static [Param] = &[
        Param::optional(
            "weight",
            "Scales each column: of the type and length of a row.",
        ),
        Param::optional(
            "bias",
            "Added to each column: as the weight, and only with one.",
        ),
        Param::number("eps", 1e-5, "Added to the variance."),
    ];
    const EXAMPLE: &'static str = "\
>>> x = np.array([[1.0, 3.0]], dtype=np.float32)
>>> warpline.layer_norm(x, eps=0.0)
array([[-1.,  1.]], dtype=float32)";

    fn options(call: &Call<'_>) -> Result<Options, FamilyError> {
        let affine = match (call.optional("weight"), call.optional("bias")) {
            (None, None) => Affine::None,
            (Some(_), None) => Affine::Weight,
            (Some(_), Some(_)) => Affine::WeightBias,
            (None, Some(_)) => {
                return call.refuse("a bias comes with a weight, and none was given".into());
            }
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
            Affine::WeightBias => &["weight", "bias"],
        }
    }

    fn scalars(options: &Options) -> Vec<(&'static str, f32)> {
        vec![("eps", options.eps as f32)]
    }

    fn reference(options: &Options, x: &[f64], vectors: &[Vec<f64>]) -> Vec<(f64, f64)> {
        let n = x.len() as f64;
        let mean = x.iter().sum::<f64>() / n;
        let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
        let r = 1.0 / (variance + f64::from(options.eps as f32)).sqrt();
        let column = |(i, x): (usize, &f64)| {
            let w = vectors.first().map_or(1.0, |w| w[i]);
            let b = vectors.get(1).map_or(0.0, |b| b[i]);
            let normal = (x - mean) * r;
            (normal * w + b, w.abs() * (normal.abs() + 1.0) + b.abs())
        };
        x.iter().enumerate().map(column).collect()
    }

    fn base(held: &Held, lanes: Lanes) -> Reg<f32> {
        lanes.first(held.units[0][0])
    }

    fn keep(base: Reg<f32>, x: Reg<f32>) -> Reg<f32> {
        x - base
    }

    fn measure(base: Reg<f32>, kept: &Held, lanes: Lanes) -> Stat {
        let count = lanes.sum(kept.count());
        let mean = lanes.sum(kept.sum(|x| x)) * recip(count.max(1.0));
        let squares = lanes.sum(kept.sum(|x| (x - mean) * (x - mean)));
        vec![count, mean, squares, base]
    }

    fn merge(a: &Stat, b: &Stat) -> Stat {
        let count = a[0] + b[0];
        let share = b[0] * recip(count.max(1.0));
        let apart = (b[3] - a[3]) + (b[1] - a[1]);
        let mean = apart.fma(share, a[1]);
        let squares = (apart * apart * a[0]).fma(share, a[2] + b[2]);
        vec![count, mean, squares, a[3]]
    }

    fn base_of(total: &Stat) -> Reg<f32> {
        total[3]
    }

    fn factors(total: &Stat, base: Reg<f32>, given: &Given) -> Vec<Reg<f32>> {
        let mean = (total[3] - base) + total[1];
        let variance = total[2] * recip(given.cols);
        vec![mean, rsqrt(variance + given.scalars[0])]
    }

    fn output(factors: &[Reg<f32>], kept: Reg<f32>, vectors: &[Reg<f32>]) -> Reg<f32> {
        let normal = (kept - factors[0]) * factors[1];
        match vectors {
            [w, b] => normal.fma(*w, *b),
            [w] => normal * *w,
            _ => normal,
        }
    }
}
