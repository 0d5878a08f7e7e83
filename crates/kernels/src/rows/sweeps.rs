//! The form for rows that no cluster can hold: each row is read twice.

use super::cell::Cell;
use super::config::Config;
use super::meet::{self, Meet};
use super::op::{Given, Held, Lanes, RowOp, Stat};
use super::raw::Raw;
use super::seat::{Io, Unit};
use warpline_ir::build::*;

/// One sweep measures the row, the second writes it.
pub(super) fn two_sweeps<K: RowOp, E: Cell>(k: Builder, c: &Config, io: &Io<E>) {
    let meet = Meet::<K>::declare(k, c);
    k.role("all").warps(c.warps()).body(|| {
        let count = io.units(c);
        let given = Given {
            cols: io.cols.cast(),
            scalars: io.scalars.clone(),
        };
        let turn = Var::new(0u32);
        // The units of this thread from `from` on; those past the end read the last there is.
        let units = |from: Reg<u32>| -> Vec<(Unit, Option<Reg<bool>>)> {
            let unit = |i: u32| {
                let at = from + thread_in_role() + i * c.threads;
                let first = at.min(count - 1);
                (Unit { first, plus: 0 }, Some(at.lt(count)))
            };
            (0..c.units).map(unit).collect()
        };
        let sweep = || range(0u32, count).by(c.threads * c.units);
        io.each_block(c, |row| {
            let x = io.x.offset(row.mul_wide(io.x_stride));
            let y = io.y.offset(row.mul_wide(io.y_stride));
            let nothing: Stat = K::NOTHING.iter().map(|n| n.reg()).collect();
            let stat = sweep().fold(nothing, |from, stat| {
                let held = held(x, &units(from), c);
                let base = K::base(&held, Lanes::ONE);
                let kept = held.map(|x| K::keep(base, x));
                K::merge(&K::measure(base, &kept, Lanes::ONE), &stat)
            });
            let mut stat = meet::lanes::<K>(stat, 32);
            if let Some(meet) = &meet {
                let warp = warp_in_role();
                stat = meet.merge(stat, turn.get(), 0u32.reg(), warp);
                turn.set((turn.get() + 1) & Meet::<K>::TURNS);
            }
            let base = K::base_of(&stat);
            let factors = K::factors(&stat, base, &given);
            sweep().each(|from| {
                let units = units(from);
                let x_units = held(x, &units, c);
                let vectors: Vec<_> = (io.vectors.iter())
                    .map(|&v| held(v, &units, c).units)
                    .collect();
                for (i, (unit, inside)) in units.into_iter().enumerate() {
                    let value = |(j, &x): (usize, &Reg<f32>)| {
                        let at: Vec<Reg<f32>> = vectors.iter().map(|v| v[i][j]).collect();
                        K::output(&factors, K::keep(base, x), &at)
                    };
                    let values: Vec<_> = x_units.units[i].iter().enumerate().map(value).collect();
                    if let Some(inside) = inside {
                        if_(inside, || Raw::<E>::narrow(&values, c).store(y, unit, c));
                    }
                }
            });
        });
    });
}

/// The thread's values of what starts at `from`.
fn held<E: Cell>(from: Global<E>, units: &[(Unit, Option<Reg<bool>>)], c: &Config) -> Held {
    let load = |(unit, _): &(Unit, _)| Raw::load(from, *unit, c).widen();
    Held {
        units: units.iter().map(load).collect(),
        inside: units.iter().map(|(_, inside)| *inside).collect(),
    }
}
