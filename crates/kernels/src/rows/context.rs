//! The steps of the forms whose threads hold a row: values, weights, outputs.

use super::cell::Cell;
use super::config::{Config, Weights};
use super::meet::Meet;
use super::op::{Given, Held, Lanes, RowOp};
use super::raw::Raw;
use super::seat::{Io, Part, Seat, Unit};
use warpline_ir::build::*;

/// A role that computes rows: its config, its parameters, and the state of a thread.
pub(super) struct RowContext<'a, K, E: Cell> {
    c: &'a Config,
    io: &'a Io<E>,
    meet: Option<Meet<K>>,
    pub(super) part: Part,
    pub(super) seat: Seat,
    given: Given,
    /// Where the weights are.
    weights: Kept<E>,
    /// Rows done so far, if records meet.
    turn: Var<u32>,
}

/// The shared memory of a CTA beside its rings.
pub(super) struct Shared<K, E> {
    meet: Option<Meet<K>>,
    /// The weights, and the barrier behind which they are written.
    weights: Option<(Tile<E>, Named)>,
}

impl<K, E> Clone for Shared<K, E> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K, E> Copy for Shared<K, E> {}

impl<K: RowOp, E: Cell> Shared<K, E> {
    pub(super) fn declare(k: Builder, c: &Config, io: &Io<E>) -> Self {
        let count = io.vectors.len() as u32;
        let cols = c.slot_row() / Io::<E>::SIZE;
        let weights = || {
            let tile = k.tile("weights", count, cols).plain().declare();
            (tile, k.named_barrier("weights"))
        };
        Self {
            meet: Meet::declare(k, c),
            weights: (c.weights == Weights::Shared && count > 0).then(weights),
        }
    }
}

/// Where the weights that every row meets are.
enum Kept<E: Cell> {
    /// In registers: this thread's units of each.
    Registers(Vec<Vec<Raw<E>>>),
    /// In shared memory, one row each.
    Shared(Tile<E>),
    /// In global memory.
    Global,
}

impl<'a, K: RowOp, E: Cell> RowContext<'a, K, E> {
    pub(super) fn new(c: &'a Config, io: &'a Io<E>, shared: Shared<K, E>) -> Self {
        let part = Part::new(io.units(c), c);
        let seat = Seat::new(part, c);
        let mut cx = Self {
            c,
            io,
            meet: shared.meet,
            part,
            seat,
            given: Given {
                cols: io.cols.cast(),
                scalars: io.scalars.clone(),
            },
            weights: Kept::Global,
            turn: Var::new(0u32),
        };
        match (c.weights, shared.weights) {
            (Weights::Registers, _) => cx.weights = Kept::Registers(cx.read_weights()),
            (Weights::Shared, Some((tile, ready))) => {
                cx.share_weights(tile, ready);
                cx.weights = Kept::Shared(tile);
            }
            _ => {}
        }
        cx
    }

    /// The thread's units of the weights, from global memory.
    fn read_weights(&self) -> Vec<Vec<Raw<E>>> {
        let all = self.io.vectors.iter();
        all.map(|&v| self.raw(self.within(v, 0u64.reg()))).collect()
    }

    /// The threads of the first row copy the weights to shared memory for all.
    fn share_weights(&self, tile: Tile<E>, ready: Named) {
        if_(self.seat.row.eq(0u32), || {
            for (i, raw) in self.read_weights().into_iter().enumerate() {
                let places = self.seat.places(self.c).into_iter();
                for ((unit, inside), raw) in places.zip(raw) {
                    let write = || self.weight_at(tile, i, unit).store(raw);
                    match inside {
                        None => write(),
                        Some(inside) => if_(inside, write),
                    }
                }
            }
        });
        ready.sync(self.c.warps() * 32);
    }

    /// A unit of the weights in shared memory.
    fn weight_at(&self, tile: Tile<E>, weight: usize, unit: Unit) -> Spot<E> {
        let row = weight as u32;
        let cols = self.c.slot_row() / Io::<E>::SIZE;
        let size = self.c.unit(Io::<E>::SIZE);
        Spot {
            tile: tile.whole().slice(row..row + 1, unit.plus * size..cols),
            row: 0u32.reg(),
            col: unit.first * size,
        }
    }

    /// Unit `i` of every weight.
    fn weights_of(&self, i: usize, unit: Unit) -> Vec<Vec<Reg<f32>>> {
        let all = 0..self.io.vectors.len();
        let raw = |w: usize| match &self.weights {
            Kept::Registers(kept) => kept[w][i].clone(),
            Kept::Shared(tile) => self.weight_at(*tile, w, unit).load(),
            Kept::Global => {
                let from = self.within(self.io.vectors[w], 0u64.reg());
                Raw::load(from, unit, self.c)
            }
        };
        all.map(|w| raw(w).widen()).collect()
    }

    /// Where this CTA's part of a row starts.
    fn within(&self, rows: Global<E>, at: Reg<u64>) -> Global<E> {
        let size = self.c.unit(Io::<E>::SIZE);
        match self.c.cluster {
            1 => rows.offset(at),
            _ => rows.offset(at).offset(self.part.first * size),
        }
    }

    /// The thread's units of what starts at `from`.
    pub(super) fn raw(&self, from: Global<E>) -> Vec<Raw<E>> {
        let units = self.seat.units(self.c).into_iter();
        units.map(|(u, _)| Raw::load(from, u, self.c)).collect()
    }

    /// The thread's values.
    pub(super) fn held(&self, raw: Vec<Raw<E>>) -> Held {
        let units = self.seat.units(self.c);
        Held {
            units: raw.into_iter().map(Raw::widen).collect(),
            inside: units.into_iter().map(|(_, inside)| inside).collect(),
        }
    }

    /// The thread's outputs from its values: `write` takes each unit.
    pub(super) fn solve(&self, held: &Held, write: impl Fn(Unit, Raw<E>)) {
        let c = self.c;
        let lanes = Lanes::of(c.threads);
        let base = K::base(held, lanes);
        let kept = held.map(|x| K::keep(base, x));
        let mut stat = K::measure(base, &kept, lanes);
        if let Some(meet) = &self.meet {
            let warp = match c.warps_of_row() {
                1 => 0u32.reg(),
                n => warp_in_role() % n,
            };
            stat = meet.merge(stat, self.turn.get(), self.seat.row, warp);
            self.turn.set((self.turn.get() + 1) & Meet::<K>::TURNS);
        }
        let factors = K::factors(&stat, base, &self.given);
        let places = self.seat.places(c).into_iter();
        let units = self.seat.units(c).into_iter().zip(places).enumerate();
        for (i, ((read, _), (unit, inside))) in units {
            let weights = self.weights_of(i, read);
            let value = |(j, &x): (usize, &Reg<f32>)| {
                let at: Vec<Reg<f32>> = weights.iter().map(|w| w[j]).collect();
                K::output(&factors, x, &at)
            };
            let values: Vec<Reg<f32>> = kept.units[i].iter().enumerate().map(value).collect();
            let out = Raw::narrow(&values, c);
            match inside {
                None => write(unit, out),
                Some(inside) => if_(inside, || write(unit, out)),
            }
        }
    }

    /// Writes the outputs of row `row` to global memory, if there is such a row.
    pub(super) fn solve_to_global(&self, held: &Held, row: Reg<u32>) {
        let y = self.within(self.io.y, row.mul_wide(self.io.y_stride));
        let there = row.lt(self.io.rows);
        self.solve(held, |unit, out| {
            if_(there, || out.store(y, unit, self.c));
        });
    }

    /// A row of x that exists: past the last, the last again.
    pub(super) fn source(&self, row: Reg<u32>) -> Global<E> {
        let row = row.min(self.io.rows - 1);
        self.within(self.io.x, row.mul_wide(self.io.x_stride))
    }
}

/// A unit in shared memory.
pub(super) struct Spot<E> {
    tile: TileRef<E>,
    row: Reg<u32>,
    col: Reg<u32>,
}

impl<E: Cell> Spot<E> {
    /// A unit of a row of a slot.
    pub(super) fn in_slot(tile: TileRef<E>, row: Reg<u32>, unit: Unit, c: &Config) -> Self {
        let size = c.unit(Io::<E>::SIZE);
        let cols = c.slot_row() / Io::<E>::SIZE;
        Self {
            tile: tile.slice(0..c.block, unit.plus * size..cols),
            row,
            col: unit.first * size,
        }
    }

    #[track_caller]
    fn load(self) -> Raw<E> {
        Raw::Vector(self.tile.load_as(self.row, self.col))
    }

    #[track_caller]
    pub(super) fn store(self, raw: Raw<E>) {
        match raw {
            Raw::Vector(words) => self.tile.store_as(self.row, self.col, words),
            Raw::One(x) => self.tile.store(self.row, self.col, x),
        }
    }
}

impl<K: RowOp, E: Cell> RowContext<'_, K, E> {
    /// Reads the thread's values from a slot, and releases it.
    pub(super) fn take(&self, slot: Slot<Tile<E>, Reading>) -> Held {
        let read =
            |(unit, _): (Unit, _)| Spot::in_slot(slot.tiles(), self.seat.row, unit, self.c).load();
        let raw = self.seat.units(self.c).into_iter().map(read).collect();
        slot.release();
        self.held(raw)
    }
}
