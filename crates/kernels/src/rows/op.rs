//! The description of a row-wise op: how values are transformed, reduced and written.

use warpline_family::error::FamilyError;
use warpline_family::field::Fields;
use warpline_family::op::{OpArgs, OpParam};
use warpline_ir::builder::*;

/// The values of a row that one thread holds, grouped by unit.
#[derive(Clone)]
pub struct RowValues {
    /// The values of each unit.
    pub units: Vec<Vec<Reg<f32>>>,
    /// Whether the unit is inside the row; `None` if it always is.
    pub inside: Vec<Option<Reg<bool>>>,
}

impl RowValues {
    /// Returns the same units with `f` applied to each value.
    #[track_caller]
    pub fn map(&self, f: impl Fn(Reg<f32>) -> Reg<f32>) -> Self {
        let unit = |u: &Vec<Reg<f32>>| u.iter().map(|&x| f(x)).collect();
        Self {
            units: self.units.iter().map(unit).collect(),
            inside: self.inside.clone(),
        }
    }

    /// Returns the sum of `f` over the values inside the row.
    #[track_caller]
    pub fn sum(&self, f: impl Fn(Reg<f32>) -> Reg<f32>) -> Reg<f32> {
        self.fold(0.0, f, |a, b| a + b)
    }

    /// Returns the maximum of the values inside the row, or -∞ if there are none.
    #[track_caller]
    pub fn max(&self) -> Reg<f32> {
        self.fold(f32::NEG_INFINITY, |x| x, |a, b| a.max(b))
    }

    /// Returns the number of values inside the row.
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

    /// Combines `f(x)` of all values. A tree inside each unit keeps dependency chains short.
    #[track_caller]
    fn fold(
        &self,
        identity: f32,
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
                Some(p) => select(*p, level[0], identity),
            }
        };
        let mut parts = self.units.iter().zip(&self.inside).map(unit);
        let first = parts.next();
        match first {
            None => identity.reg(),
            Some(first) => parts.fold(first, &join),
        }
    }
}

/// The lanes of a warp that hold a row, or the warp's part of it.
#[derive(Clone, Copy)]
pub struct RowLanes(u32);

impl RowLanes {
    /// A single lane.
    pub const ONE: Self = Self(1);

    /// Returns the lanes of one warp for a row that `threads` threads hold.
    pub(super) fn of(threads: u32) -> Self {
        Self(threads.min(32))
    }

    /// Combines the values of all lanes by butterfly shuffles; every lane gets the result.
    #[track_caller]
    fn all_reduce(
        self,
        mut x: Reg<f32>,
        join: impl Fn(Reg<f32>, Reg<f32>) -> Reg<f32>,
    ) -> Reg<f32> {
        let mut mask = 1;
        while mask < self.0 {
            x = join(x, shuffle_xor(x, mask));
            mask *= 2;
        }
        x
    }

    /// Returns the sum over the lanes.
    #[track_caller]
    pub fn sum(self, x: Reg<f32>) -> Reg<f32> {
        self.all_reduce(x, |a, b| a + b)
    }

    /// Returns the maximum over the lanes.
    #[track_caller]
    pub fn max(self, x: Reg<f32>) -> Reg<f32> {
        self.all_reduce(x, |a, b| a.max(b))
    }

    /// Returns the value of the first lane.
    #[track_caller]
    pub fn first(self, x: Reg<f32>) -> Reg<f32> {
        match self.0 {
            1 => x,
            n => shuffle_from(x, lane_id() & !(n - 1)),
        }
    }
}

/// The launch parameters that the formulas of an op use.
#[derive(Clone)]
pub struct OpParams {
    /// Number of columns.
    pub cols: Reg<f32>,
    /// The scalars of the op ([`RowOp::scalars`]).
    pub scalars: Vec<Reg<f32>>,
}

/// The maximum length of [`RowRecord`].
pub(super) const MAX_RECORD_LEN: u32 = 4;

/// The record of a part of a row: statistics that merge, as many numbers as [`RowOp::IDENTITY`].
pub type RowRecord = Vec<Reg<f32>>;

/// The description of a row-wise op; [`RowFamily`](super::RowFamily) makes a family of it.
///
/// The lanes of a warp compute a **shift** (softmax: their maximum), **transform** their values with it
/// and reduce the transformed values to a **record**. The records of warps and CTAs merge. From the
/// record of the whole row follow a few **factors**, with which each transformed value becomes an output.
pub trait RowOp: Send + Sync + 'static {
    /// The name of the family.
    const NAME: &'static str;
    /// The formula, in one line.
    const ABOUT: &'static str;

    /// The op's own fields of the problem.
    type Options: Fields + PartialEq + Default;
    /// Rejects invalid options. The default accepts all.
    fn check(_options: &Self::Options) -> Result<(), FamilyError> {
        Ok(())
    }
    /// Returns the names of the per-column vectors (weight, bias), each as long as a row.
    fn vectors(_options: &Self::Options) -> &'static [&'static str] {
        &[]
    }
    /// Returns the names and values of the op's scalar parameters.
    fn scalars(_options: &Self::Options) -> Vec<(&'static str, f32)> {
        Vec::new()
    }

    /// The name of the Python function.
    const OP: &'static str;
    /// The parameters of the Python function after the matrix.
    const PARAMS: &'static [OpParam];
    /// An example call in Python.
    const EXAMPLE: &'static str;
    /// Returns the options of a call.
    fn options(call: &OpArgs<'_>) -> Result<Self::Options, FamilyError>;

    /// Computes one row in float64: each value, and the scale of its fp32 error.
    fn reference(options: &Self::Options, x: &[f64], vectors: &[Vec<f64>]) -> Vec<(f64, f64)>;
    /// Floating-point operations per element.
    const FLOPS: f64;

    /// The record of an empty part, the identity of [`merge`](Self::merge): 1, 2 or 4 numbers.
    const IDENTITY: &'static [f32];
    /// Whether [`merge`](Self::merge) returns the same bits when its arguments are swapped.
    const MERGE_IS_COMMUTATIVE: bool;
    /// Returns the shift of the values, the same in all lanes.
    fn shift(values: &RowValues, lanes: RowLanes) -> Reg<f32>;
    /// Applies the shift to a value.
    fn transform(shift: Reg<f32>, x: Reg<f32>) -> Reg<f32>;
    /// Reduces the transformed values of the lanes to a record, the same in all lanes.
    fn stats(shift: Reg<f32>, transformed: &RowValues, lanes: RowLanes) -> RowRecord;
    /// Merges the records of two parts of a row.
    fn merge(a: &RowRecord, b: &RowRecord) -> RowRecord;
    /// Returns the shift that belongs to a record, for values that are loaded again.
    fn shift_of(total: &RowRecord) -> Reg<f32>;
    /// Returns the factors of a whole row, for values transformed with `shift`.
    fn factors(total: &RowRecord, shift: Reg<f32>, params: &OpParams) -> Vec<Reg<f32>>;
    /// Computes an output from a transformed value and its elements of the vectors.
    fn output(factors: &[Reg<f32>], transformed: Reg<f32>, vectors: &[Reg<f32>]) -> Reg<f32>;
}
