//! The description of an op over rows: how values are kept, measured and written.

use warpline_family::error::FamilyError;
use warpline_family::field::Fields;
use warpline_family::op::{Call, Param};
use warpline_ir::build::*;

/// The values of a row that one thread holds, in units that are loaded and stored at once.
#[derive(Clone)]
pub struct Held {
    /// The values, by unit.
    pub units: Vec<Vec<Reg<f32>>>,
    /// For a unit that may be past the row's end: is it inside the row?
    pub inside: Vec<Option<Reg<bool>>>,
}

impl Held {
    /// The same units with other values.
    #[track_caller]
    pub fn map(&self, f: impl Fn(Reg<f32>) -> Reg<f32>) -> Self {
        let unit = |u: &Vec<Reg<f32>>| u.iter().map(|&x| f(x)).collect();
        Self {
            units: self.units.iter().map(unit).collect(),
            inside: self.inside.clone(),
        }
    }

    /// The sum of `f` over the values inside the row.
    #[track_caller]
    pub fn sum(&self, f: impl Fn(Reg<f32>) -> Reg<f32>) -> Reg<f32> {
        self.fold(0.0, f, |a, b| a + b)
    }

    /// The greatest value inside the row; -∞ if there is none.
    #[track_caller]
    pub fn max(&self) -> Reg<f32> {
        self.fold(f32::NEG_INFINITY, |x| x, |a, b| a.max(b))
    }

    /// How many values are inside the row.
    #[track_caller]
    pub fn count(&self) -> Reg<f32> {
        let mut fixed = 0.0;
        let mut counted: Option<Reg<f32>> = None;
        for (unit, inside) in self.units.iter().zip(&self.inside) {
            let len = unit.len() as f32;
            match inside {
                None => fixed += len,
                Some(p) => {
                    let n = select(*p, len, 0.0f32);
                    counted = Some(counted.map_or(n, |c| c + n));
                }
            }
        }
        counted.map_or_else(|| fixed.reg(), |c| c + fixed)
    }

    /// Combines `f` of all values, as a tree inside each unit.
    #[track_caller]
    fn fold(
        &self,
        none: f32,
        f: impl Fn(Reg<f32>) -> Reg<f32>,
        join: impl Fn(Reg<f32>, Reg<f32>) -> Reg<f32>,
    ) -> Reg<f32> {
        let unit = |(unit, inside): (&Vec<Reg<f32>>, &Option<Reg<bool>>)| {
            let mut level: Vec<Reg<f32>> = unit.iter().map(|&x| f(x)).collect();
            while level.len() > 1 {
                let pair = |p: &[Reg<f32>]| match p {
                    [a, b] => join(*a, *b),
                    _ => p[0],
                };
                level = level.chunks(2).map(pair).collect();
            }
            match inside {
                None => level[0],
                Some(p) => select(*p, level[0], none),
            }
        };
        let mut parts = self.units.iter().zip(&self.inside).map(unit);
        let first = parts.next();
        match first {
            None => none.reg(),
            Some(first) => parts.fold(first, &join),
        }
    }
}

/// The lanes of a warp that hold a row, or a warp's part of it, together.
#[derive(Clone, Copy)]
pub struct Lanes(u32);

impl Lanes {
    /// A lane on its own.
    pub const ONE: Self = Self(1);

    /// The lanes of a row that `threads` threads hold.
    pub(super) fn of(threads: u32) -> Self {
        Self(threads.min(32))
    }

    /// Combines the values of all lanes; every lane gets the result.
    #[track_caller]
    fn all(self, mut x: Reg<f32>, join: impl Fn(Reg<f32>, Reg<f32>) -> Reg<f32>) -> Reg<f32> {
        let mut mask = 1;
        while mask < self.0 {
            x = join(x, shuffle_xor(x, mask));
            mask *= 2;
        }
        x
    }

    /// The sum over the lanes.
    #[track_caller]
    pub fn sum(self, x: Reg<f32>) -> Reg<f32> {
        self.all(x, |a, b| a + b)
    }

    /// The greatest over the lanes.
    #[track_caller]
    pub fn max(self, x: Reg<f32>) -> Reg<f32> {
        self.all(x, |a, b| a.max(b))
    }

    /// The value of the first lane.
    #[track_caller]
    pub fn first(self, x: Reg<f32>) -> Reg<f32> {
        match self.0 {
            1 => x,
            n => shuffle_from(x, lane_id() & !(n - 1)),
        }
    }
}

/// The launch parameters that the factors of a row depend on.
#[derive(Clone)]
pub struct Given {
    /// Columns.
    pub cols: Reg<f32>,
    /// The op's own numbers ([`RowOp::scalars`]).
    pub scalars: Vec<Reg<f32>>,
}

/// The most numbers of a record.
pub(super) const MOST_NUMBERS: u32 = 4;

/// A record of measured values: as many numbers as [`RowOp::NOTHING`].
pub type Stat = Vec<Reg<f32>>;

/// The description of an op over rows; [`Rows`](super::Rows) makes a family of it.
///
/// The lanes of a warp hold some values of a row. They take a **base** from
/// them, keep the values against it, and measure the kept values in a record.
/// Records of warps and CTAs merge; from the record of the whole row follow a
/// few factors, and every kept value becomes an output.
pub trait RowOp: Send + Sync + 'static {
    /// The family's name.
    const NAME: &'static str;
    /// The formula, in one line.
    const ABOUT: &'static str;

    /// The op's own fields of the problem.
    type Options: Fields + PartialEq + Default;
    /// Rejects options that have no meaning.
    fn check(_options: &Self::Options) -> Result<(), FamilyError> {
        Ok(())
    }
    /// The names of the vectors, as long as a row, that scale or shift every row.
    fn vectors(_options: &Self::Options) -> &'static [&'static str] {
        &[]
    }
    /// The names and values of the op's own numbers.
    fn scalars(_options: &Self::Options) -> Vec<(&'static str, f32)> {
        Vec::new()
    }

    /// The name of the Python function.
    const OP: &'static str;
    /// Its parameters after the matrix.
    const PARAMS: &'static [Param];
    /// An example of a call in Python.
    const EXAMPLE: &'static str;
    /// Returns the options that a call asks for.
    fn options(call: &Call<'_>) -> Result<Self::Options, FamilyError>;

    /// Computes one row in float64: every value, and the scale of its fp32 error.
    fn reference(options: &Self::Options, x: &[f64], vectors: &[Vec<f64>]) -> Vec<(f64, f64)>;
    /// Floating-point operations for one value.
    const FLOPS: f64;

    /// The record of no values: 1, 2 or 4 numbers.
    const NOTHING: &'static [f32];
    /// Does [`merge`](Self::merge) give the same bits if its arguments are swapped?
    const SYMMETRIC: bool;
    /// Returns the base of the values, the same in all lanes.
    fn base(held: &Held, lanes: Lanes) -> Reg<f32>;
    /// Keeps a value against a base.
    fn keep(base: Reg<f32>, x: Reg<f32>) -> Reg<f32>;
    /// Measures the kept values of the lanes; the record is the same in all lanes.
    fn measure(base: Reg<f32>, kept: &Held, lanes: Lanes) -> Stat;
    /// Merges the records of two parts of a row.
    fn merge(a: &Stat, b: &Stat) -> Stat;
    /// Returns the base of a record, for values that are kept again.
    fn base_of(total: &Stat) -> Reg<f32>;
    /// Returns the factors of a whole row, for values kept against `base`.
    fn factors(total: &Stat, base: Reg<f32>, given: &Given) -> Vec<Reg<f32>>;
    /// Computes an output from a kept value and its elements of the vectors.
    fn output(factors: &[Reg<f32>], kept: Reg<f32>, vectors: &[Reg<f32>]) -> Reg<f32>;
}
