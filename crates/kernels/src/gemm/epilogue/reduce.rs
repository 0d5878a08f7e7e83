//! Reductions of C before rounding: row sums, column sums, amax.
//!
//! Each consumer stores partial results in the workspace, and a second kernel (`fold`) combines them in
//! a fixed order: every run returns the same bits.

use super::fold;
use crate::gemm::config::Config;
use crate::gemm::offset::Offset;
use crate::gemm::problem::{Problem, Reduction};
use warpline_family::error::FamilyError;
use warpline_family::plan::{Buffer, LaunchStep, ZEROED_BYTES};
use warpline_ir::Target;
use warpline_ir::builder::*;

/// The axis of the MMA tile along which results are kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReductionAxis {
    /// One result per row of the MMA tile.
    Row,
    /// One result per column of the MMA tile.
    Col,
    /// One result in all.
    All,
}

impl ReductionAxis {
    fn of(reduction: Reduction, swap_ab: bool) -> Self {
        match (reduction, swap_ab) {
            (Reduction::Amax, _) => ReductionAxis::All,
            (Reduction::RowSums, false) | (Reduction::ColSums, true) => ReductionAxis::Row,
            (Reduction::ColSums, false) | (Reduction::RowSums, true) => ReductionAxis::Col,
        }
    }
}

/// Returns the parameter name of the partial results of a reduction.
fn param_name(reduction: Reduction) -> String {
    format!("{}_parts", reduction.name())
}

/// Returns the number of partial results of each output element.
fn partial_count(reduction: Reduction, p: &Problem, c: &Config) -> u64 {
    let [m_tiles, n_tiles] = c.tiles(p);
    // Tiles along the rows and along the columns of an MMA tile.
    let (row_tiles, col_tiles) = if c.swap_ab() {
        (n_tiles, m_tiles)
    } else {
        (m_tiles, n_tiles)
    };
    match ReductionAxis::of(reduction, c.swap_ab()) {
        ReductionAxis::Row => col_tiles,
        ReductionAxis::Col => row_tiles * u64::from(c.mma_tile()[0] / c.rows() * WARPS),
        ReductionAxis::All => u64::from(c.ctas * c.consumers() * WARPS),
    }
}

/// Warps of a consumer.
const WARPS: u32 = 4;

/// Returns the workspace offset of each reduction's partial results, and their end. They follow the
/// first `used_bytes`.
fn partial_layout(p: &Problem, c: &Config, used_bytes: u64) -> (Vec<(Reduction, u64)>, u64) {
    let mut end = used_bytes;
    let all = p.class().epilogue.reductions().into_iter();
    let offsets = all.map(|reduction| {
        let offset = end.max(ZEROED_BYTES).next_multiple_of(256);
        end = offset + partial_count(reduction, p, c) * u64::from(reduction.len(p)) * 4;
        (reduction, offset)
    });
    let offsets = offsets.collect();
    (offsets, end)
}

/// Returns the size of the workspace, with `used_bytes` before the partial results.
pub(in crate::gemm) fn workspace(p: &Problem, c: &Config, used_bytes: u64) -> u64 {
    partial_layout(p, c, used_bytes).1
}

/// Binds the partial results, which follow the first `used_bytes` of the workspace.
pub(super) fn bind_args(
    mut step: LaunchStep,
    p: &Problem,
    c: &Config,
    used_bytes: u64,
) -> LaunchStep {
    for (reduction, offset) in partial_layout(p, c, used_bytes).0 {
        step = step.pointer(&param_name(reduction), Buffer::Workspace.at(offset));
        step = match reduction {
            Reduction::Amax => step,
            _ => step.scalar(
                &format!("{}_count", reduction.name()),
                partial_count(reduction, p, c) as u32,
            ),
        };
    }
    step
}

/// Returns the launches that combine the partial results, which follow the first `used_bytes` of
/// the workspace.
pub(in crate::gemm) fn fold(
    p: &Problem,
    c: &Config,
    used_bytes: u64,
    target: &Target,
) -> Result<Vec<LaunchStep>, FamilyError> {
    let step = |(i, (reduction, offset)): (usize, (Reduction, u64))| {
        let (count, out) = (partial_count(reduction, p, c) as u32, Buffer::Output(1 + i));
        match reduction {
            Reduction::Amax => fold::max(count, Buffer::Workspace.at(offset), out, target),
            _ => {
                let from = Buffer::Workspace.at(offset);
                fold::sum_columns([count, reduction.len(p)], from, out, target)
            }
        }
    };
    partial_layout(p, c, used_bytes)
        .0
        .into_iter()
        .enumerate()
        .map(step)
        .collect()
}

/// A reduction op of a kernel.
#[derive(Clone, Copy)]
pub(super) struct Reduce {
    axis: ReductionAxis,
    partials: Partials,
    /// Elements of the output.
    len: Reg<u32>,
    /// Rows of the MMA tile per consumer, and columns of the MMA tile.
    consumer_tile: [u32; 2],
    consumers: u32,
}

/// Partial results in memory.
#[derive(Clone, Copy)]
enum Partials {
    Sums(Global<f32>),
    /// The bits of |x|: as integers they order like the numbers, with NaN above all.
    Bits(Global<u32>),
}

/// The state of a reduction in a consumer role: the row sums of a tile, or the bits of the maximum.
#[derive(Clone)]
pub(super) enum ReductionState {
    Rows(<RowVector as Carry>::Vars),
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
        let axis = ReductionAxis::of(reduction, c.swap_ab());
        let name = param_name(reduction);
        let len = match reduction {
            Reduction::RowSums => m,
            _ => n,
        };
        let partials = match reduction {
            Reduction::Amax => Partials::Bits(k.pointer(&name)),
            _ => {
                let count = k.param::<u32>(&format!("{}_count", reduction.name()));
                Partials::Sums(k.pointer(&name).elements(extent(count) * len))
            }
        };
        Self {
            axis,
            partials,
            len,
            consumer_tile: [c.rows(), c.mma_tile()[1]],
            consumers: c.consumers(),
        }
    }

    /// Returns the initial state of a consumer role.
    #[track_caller]
    pub(super) fn begin(&self) -> ReductionState {
        match self.axis {
            ReductionAxis::Row => {
                ReductionState::Rows(RowVector::splat(self.consumer_tile[0], 0.0f32).open())
            }
            ReductionAxis::Col => ReductionState::Nothing,
            ReductionAxis::All => ReductionState::Bits(Var::new(0u32)),
        }
    }

    /// Resets the state at the start of a tile.
    #[track_caller]
    pub(super) fn begin_tile(&self, state: &ReductionState) {
        if let ReductionState::Rows(vars) = state {
            RowVector::store(vars, RowVector::splat(self.consumer_tile[0], 0.0f32));
        }
    }

    /// Accumulates the values of a part of a tile; out-of-bounds values are zero.
    #[track_caller]
    pub(super) fn accumulate(&self, x: &Frag, offset: Offset, state: &ReductionState) {
        match (state, self.partials) {
            (ReductionState::Rows(vars), _) => {
                let sums =
                    RowVector::load(vars).zip(&x.row_reduce_partial(|x, y| x + y), |x, y| x + y);
                RowVector::store(vars, sums);
            }
            (ReductionState::Bits(max), _) => {
                x.each_pair(|_, pair| {
                    for x in pair {
                        max.set(max.get().max(x.abs().bitcast::<u32>()));
                    }
                });
            }
            (ReductionState::Nothing, Partials::Sums(partials)) => {
                let row =
                    offset.row / self.consumer_tile[0] * WARPS + (warp_in_role() & (WARPS - 1));
                let row = partials.offset(row.mul_wide(self.len));
                let sums = x.col_reduce(|x, y| x + y);
                if_(lane_id().lt(4u32), || {
                    let mut sums = sums.into_iter();
                    map_col_pairs(x.cols(), |col| {
                        for (i, sum) in (0..).zip(sums.next().into_iter().flatten()) {
                            let col = offset.col + col + i;
                            if_(col.lt(self.len), || row.store(col, sum));
                        }
                    });
                });
            }
            (ReductionState::Nothing, Partials::Bits(_)) => {}
        }
    }

    /// Stores the row sums of a finished tile.
    #[track_caller]
    pub(super) fn end_tile(&self, offset: Offset, state: &ReductionState) {
        if let (ReductionState::Rows(vars), Partials::Sums(partials)) = (state, self.partials) {
            let tile_partials =
                partials.offset((offset.col / self.consumer_tile[1]).mul_wide(self.len));
            let sums = RowVector::load(vars).reduce_lanes(|x, y| x + y);
            sums.each(|row, sum| {
                let row = offset.row + row;
                if_(row.lt(self.len), || tile_partials.store(row, sum));
            });
        }
    }

    /// Stores the maximum of a consumer role at its end.
    #[track_caller]
    pub(super) fn end(&self, consumer: u32, state: &ReductionState) {
        if let (ReductionState::Bits(max), Partials::Bits(partials)) = (state, self.partials) {
            let max = redux_max(max.get());
            let warp =
                (cta_id() * self.consumers + consumer) * WARPS + (warp_in_role() & (WARPS - 1));
            if_(lane_id().eq(0u32), || partials.store(warp, max));
        }
    }
}

/// Returns the reduction of all values of C in float64, and its error bound.
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
            let max = |(x, e): (f64, f64), &(y, f): &(f64, f64)| {
                let greater = match x.is_nan() || x >= y.abs() {
                    true => x,
                    false => y.abs(),
                };
                (greater, e.max(f))
            };
            vec![values.iter().fold((0.0, 0.0), max)]
        }
    }
}

/// Returns the sum of values and its error bound: their errors, and one rounding per addition.
fn sum<'a>(values: impl Iterator<Item = &'a (f64, f64)>) -> (f64, f64) {
    let (mut total, mut error, mut magnitude, mut count) = (0.0, 0.0, 0.0, 0.0);
    for &(x, e) in values {
        total += x;
        error += e;
        magnitude += x.abs();
        count += 1.0;
    }
    match total.is_finite() {
        true => (total, error + count * 2f64.powi(-24) * magnitude),
        false => (total, 0.0),
    }
}
