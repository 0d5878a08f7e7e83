//! Reductions of C, taken before it is rounded: row sums, column sums, amax.
//!
//! Each consumer leaves partial results in the workspace, and a second kernel (`fold`) adds them up:
//! every run adds in the same order, and so gives the same bits.

use super::fold;
use crate::gemm::config::Config;
use crate::gemm::offset::Offset;
use crate::gemm::problem::{Problem, Reduction};
use warpline_family::error::FamilyError;
use warpline_family::plan::{Buffer, Step, ZEROED};
use warpline_ir::Target;
use warpline_ir::build::*;

/// Which side of the tensor cores' tile a result belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Each {
    /// A number for each row of it.
    Row,
    /// A number for each column of it.
    Col,
    /// One number.
    All,
}

impl Each {
    fn of(reduction: Reduction, swap_ab: bool) -> Self {
        match (reduction, swap_ab) {
            (Reduction::Amax, _) => Each::All,
            (Reduction::RowSums, false) | (Reduction::ColSums, true) => Each::Row,
            (Reduction::ColSums, false) | (Reduction::RowSums, true) => Each::Col,
        }
    }
}

/// The parameter behind which the partial results of a reduction are.
fn parameter(reduction: Reduction) -> String {
    format!("{}_parts", reduction.name())
}

/// Partial results of a reduction: so many, each for all elements of its output.
fn parts(reduction: Reduction, p: &Problem, c: &Config) -> u64 {
    let [tall, wide] = c.tiles(p);
    // Tiles along the rows of the tensor cores' tile, and along its columns.
    let (down, across) = if c.swap_ab() {
        (wide, tall)
    } else {
        (tall, wide)
    };
    match Each::of(reduction, c.swap_ab()) {
        Each::Row => across,
        Each::Col => down * u64::from(c.sides()[0] / c.rows() * WARPS),
        Each::All => u64::from(c.ctas * c.consumers() * WARPS),
    }
}

/// Warps of a consumer.
const WARPS: u32 = 4;

/// Where the partial results of each reduction start in the workspace, and where they end: behind
/// `used` bytes.
fn places(p: &Problem, c: &Config, used: u64) -> (Vec<(Reduction, u64)>, u64) {
    let mut end = used;
    let all = p.class().epilogue.reductions().into_iter();
    let places = all.map(|reduction| {
        let at = end.max(ZEROED).next_multiple_of(256);
        end = at + parts(reduction, p, c) * u64::from(reduction.len(p)) * 4;
        (reduction, at)
    });
    let places = places.collect();
    (places, end)
}

/// Bytes of the workspace of which `used` are for others.
pub(in crate::gemm) fn workspace(p: &Problem, c: &Config, used: u64) -> u64 {
    places(p, c, used).1
}

/// Binds the partial results, which lie behind `used` bytes of the workspace.
pub(super) fn bind_args(mut step: Step, p: &Problem, c: &Config, used: u64) -> Step {
    for (reduction, at) in places(p, c, used).0 {
        step = step.pointer(&parameter(reduction), Buffer::Workspace.at(at));
        step = match reduction {
            Reduction::Amax => step,
            _ => step.scalar(
                &format!("{}_count", reduction.name()),
                parts(reduction, p, c) as u32,
            ),
        };
    }
    step
}

/// The steps that add up partial results, which lie behind `used` bytes of the workspace.
pub(in crate::gemm) fn fold(
    p: &Problem,
    c: &Config,
    used: u64,
    target: &Target,
) -> Result<Vec<Step>, FamilyError> {
    let step = |(i, (reduction, at)): (usize, (Reduction, u64))| {
        let (count, out) = (parts(reduction, p, c) as u32, Buffer::Output(1 + i));
        match reduction {
            Reduction::Amax => fold::all(count, Buffer::Workspace.at(at), out, target),
            _ => {
                let from = Buffer::Workspace.at(at);
                fold::columns([count, reduction.len(p)], from, out, target)
            }
        }
    };
    places(p, c, used)
        .0
        .into_iter()
        .enumerate()
        .map(step)
        .collect()
}

/// A reduction of a kernel.
#[derive(Clone, Copy)]
pub(super) struct Reduce {
    each: Each,
    parts: Parts,
    /// Elements of the output.
    len: Reg<u32>,
    /// Rows of the tensor cores' tile of one consumer, and columns of the tile.
    sides: [u32; 2],
    consumers: u32,
}

/// Partial results in memory.
#[derive(Clone, Copy)]
enum Parts {
    Sums(Global<f32>),
    /// The bits of magnitudes, which are in the order of the numbers; NaN is above all.
    Bits(Global<u32>),
}

/// What a role carries of a reduction: the sums of a tile's rows, or the greatest magnitude.
#[derive(Clone)]
pub(super) enum Carried {
    Rows(<Rows as Carry>::Vars),
    Nothing,
    Bits(Var<u32>),
}

impl Reduce {
    /// Declares the parameters.
    pub(super) fn declare(
        k: Builder,
        reduction: Reduction,
        c: &Config,
        [m, n]: [Reg<u32>; 2],
    ) -> Self {
        let each = Each::of(reduction, c.swap_ab());
        let name = parameter(reduction);
        let len = match reduction {
            Reduction::RowSums => m,
            _ => n,
        };
        let parts = match reduction {
            Reduction::Amax => Parts::Bits(k.pointer(&name)),
            _ => {
                let count = k.param::<u32>(&format!("{}_count", reduction.name()));
                Parts::Sums(k.pointer(&name).elements(extent(count) * len))
            }
        };
        Self {
            each,
            parts,
            len,
            sides: [c.rows(), c.sides()[1]],
            consumers: c.consumers(),
        }
    }

    /// What a role carries through its tiles.
    #[track_caller]
    pub(super) fn begin(&self) -> Carried {
        match self.each {
            Each::Row => Carried::Rows(Rows::splat(self.sides[0], 0.0f32).open()),
            Each::Col => Carried::Nothing,
            Each::All => Carried::Bits(Var::new(0u32)),
        }
    }

    /// Begins a tile.
    #[track_caller]
    pub(super) fn begin_tile(&self, carried: &Carried) {
        if let Carried::Rows(vars) = carried {
            Rows::store(vars, Rows::splat(self.sides[0], 0.0f32));
        }
    }

    /// Takes the values of a part of a tile, zero outside of C.
    #[track_caller]
    pub(super) fn take(&self, x: &Frag, at: Offset, carried: &Carried) {
        match (carried, self.parts) {
            (Carried::Rows(vars), _) => {
                let sums = Rows::load(vars).zip(&x.row_parts(|x, y| x + y), |x, y| x + y);
                Rows::store(vars, sums);
            }
            (Carried::Bits(most), _) => {
                x.each_pair(|_, pair| {
                    for x in pair {
                        most.set(most.get().max(x.abs().bitcast::<u32>()));
                    }
                });
            }
            (Carried::Nothing, Parts::Sums(parts)) => {
                let row = at.row / self.sides[0] * WARPS + (warp_in_role() & (WARPS - 1));
                let row = parts.offset(row.mul_wide(self.len));
                let sums = x.col_reduce(|x, y| x + y);
                if_(lane_id().lt(4u32), || {
                    let mut sums = sums.into_iter();
                    col_pairs(x.cols(), |col| {
                        for (i, sum) in (0..).zip(sums.next().into_iter().flatten()) {
                            let col = at.col + col + i;
                            if_(col.lt(self.len), || row.store(col, sum));
                        }
                    });
                });
            }
            (Carried::Nothing, Parts::Bits(_)) => {}
        }
    }

    /// Ends a tile.
    #[track_caller]
    pub(super) fn end_tile(&self, at: Offset, carried: &Carried) {
        if let (Carried::Rows(vars), Parts::Sums(parts)) = (carried, self.parts) {
            let part = parts.offset((at.col / self.sides[1]).mul_wide(self.len));
            let sums = Rows::load(vars).across(|x, y| x + y);
            sums.each(|row, sum| {
                let row = at.row + row;
                if_(row.lt(self.len), || part.store(row, sum));
            });
        }
    }

    /// Ends the role of a consumer.
    #[track_caller]
    pub(super) fn end(&self, consumer: u32, carried: &Carried) {
        if let (Carried::Bits(most), Parts::Bits(parts)) = (carried, self.parts) {
            let most = redux_max(most.get());
            let warp =
                (cta_id() * self.consumers + consumer) * WARPS + (warp_in_role() & (WARPS - 1));
            if_(lane_id().eq(0u32), || parts.store(warp, most));
        }
    }
}

/// The reduction in float64, and its error: of all values of C with their errors.
pub(in crate::gemm) fn reference(
    reduction: Reduction,
    p: &Problem,
    values: &[(f64, f64)],
) -> Vec<(f64, f64)> {
    let n = p.n as usize;
    match reduction {
        Reduction::RowSums => values.chunks(n).map(|row| sum(row.iter())).collect(),
        Reduction::ColSums => {
            let col = |j: usize| sum(values[j..].iter().step_by(n));
            (0..n).map(col).collect()
        }
        Reduction::Amax => {
            let most = |(x, e): (f64, f64), &(y, f): &(f64, f64)| {
                let greater = match x.is_nan() || x >= y.abs() {
                    true => x,
                    false => y.abs(),
                };
                (greater, e.max(f))
            };
            vec![values.iter().fold((0.0, 0.0), most)]
        }
    }
}

/// The sum of values, and its error: theirs, and one rounding for each addition.
fn sum<'a>(values: impl Iterator<Item = &'a (f64, f64)>) -> (f64, f64) {
    let (mut total, mut error, mut size, mut count) = (0.0, 0.0, 0.0, 0.0);
    for &(x, e) in values {
        total += x;
        error += e;
        size += x.abs();
        count += 1.0;
    }
    match total.is_finite() {
        true => (total, error + count * 2f64.powi(-24) * size),
        false => (total, 0.0),
    }
}
