//! The schedule for rows that no cluster can hold: each row is loaded twice.

use super::config::Config;
use super::element::RowElement;
use super::op::{OpParams, RowLanes, RowOp, RowRecord, RowValues};
use super::packed::PackedUnit;
use super::partition::{RowParams, UnitIndex};
use super::reduce::{self, RowReduction};
use warpline_ir::builder::*;

/// The first pass reduces the row, the second writes the outputs.
pub(super) fn two_pass<K: RowOp, E: RowElement>(k: Builder, c: &Config, params: &RowParams<E>) {
    let reduction = RowReduction::<K>::declare(k, c);
    k.role("all").warps(c.warps()).body(|| {
        let count = params.units(c);
        let op_params = OpParams {
            cols: params.cols.cast(),
            scalars: params.scalars.clone(),
        };
        let reduction_count = Var::new(0u32);
        // The units of this thread from `from` on; a unit past the end is clamped to the last one and masked.
        let units = |from: Reg<u32>| -> Vec<(UnitIndex, Option<Reg<bool>>)> {
            let unit = |i: u32| {
                let index = from + thread_in_role() + i * c.threads;
                let base = index.min(count - 1);
                (UnitIndex { base, offset: 0 }, Some(index.lt(count)))
            };
            (0..c.units).map(unit).collect()
        };
        let pass = || range(0u32, count).step_by(c.threads * c.units);
        params.for_each_block(c, |row| {
            let x = params.x.offset(row.mul_wide(params.x_stride));
            let y = params.y.offset(row.mul_wide(params.y_stride));
            let identity: RowRecord = K::IDENTITY.iter().map(|n| n.reg()).collect();
            let stats = pass().fold(identity, |from, stats| {
                let values = load_values(x, &units(from), c);
                let shift = K::shift(&values, RowLanes::ONE);
                let transformed = values.map(|x| K::transform(shift, x));
                K::merge(&K::stats(shift, &transformed, RowLanes::ONE), &stats)
            });
            let mut stats = reduce::across_lanes::<K>(stats, 32);
            if let Some(reduction) = &reduction {
                let warp = warp_in_role();
                stats = reduction.all_reduce(stats, reduction_count.get(), 0u32.reg(), warp);
                reduction_count.set((reduction_count.get() + 1) & RowReduction::<K>::COUNT_MASK);
            }
            let shift = K::shift_of(&stats);
            let factors = K::factors(&stats, shift, &op_params);
            pass().each(|from| {
                let units = units(from);
                let x_units = load_values(x, &units, c);
                let vectors: Vec<_> = (params.vectors.iter())
                    .map(|&v| load_values(v, &units, c).units)
                    .collect();
                for (i, (unit, inside)) in units.into_iter().enumerate() {
                    let value = |(j, &x): (usize, &Reg<f32>)| {
                        let column: Vec<Reg<f32>> = vectors.iter().map(|v| v[i][j]).collect();
                        K::output(&factors, K::transform(shift, x), &column)
                    };
                    let outputs: Vec<_> = x_units.units[i].iter().enumerate().map(value).collect();
                    if let Some(inside) = inside {
                        if_(inside, || {
                            PackedUnit::<E>::narrow(&outputs, c).store(y, unit, c)
                        });
                    }
                }
            });
        });
    });
}

/// Loads `units` of the row or per-column vector at `source`.
fn load_values<E: RowElement>(
    source: Global<E>,
    units: &[(UnitIndex, Option<Reg<bool>>)],
    c: &Config,
) -> RowValues {
    let load = |(unit, _): &(UnitIndex, _)| PackedUnit::load(source, *unit, c).widen();
    RowValues {
        units: units.iter().map(load).collect(),
        inside: units.iter().map(|(_, inside)| *inside).collect(),
    }
}
