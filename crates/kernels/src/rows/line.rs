//! The forms whose threads hold a row: direct, double-buffer, specialized, three-roles.

use super::cell::{Cell, VECTOR};
use super::config::{Config, Form, Weights};
use super::meet::Meet;
use super::op::{Given, Held, Lanes, RowOp};
use super::raw::Raw;
use super::seat::{Io, Part, Seat, Unit};
use warpline_ir::build::*;
use warpline_ir::{BuildErrors, Kernel, Target};

/// What a form is written with.
struct Line<'a, K, E: Cell> {
    c: &'a Config,
    io: &'a Io<E>,
    meet: Option<Meet<K>>,
    part: Part,
    seat: Seat,
    given: Given,
    /// Where the weights are.
    weights: Kept<E>,
    /// Rows done so far, where records meet.
    turn: Var<u32>,
}

/// What the threads of a CTA share besides rows.
struct Shared<K, E> {
    meet: Option<Meet<K>>,
    /// The weights, and where the threads learn that they are there.
    weights: Option<(Tile<E>, Named)>,
}

impl<K, E> Clone for Shared<K, E> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K, E> Copy for Shared<K, E> {}

impl<K: RowOp, E: Cell> Shared<K, E> {
    fn declare(k: Builder, c: &Config, io: &Io<E>) -> Self {
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

impl<'a, K: RowOp, E: Cell> Line<'a, K, E> {
    fn new(c: &'a Config, io: &'a Io<E>, shared: Shared<K, E>) -> Self {
        let part = Part::new(io.units(c), c);
        let seat = Seat::new(part, c);
        let mut line = Self {
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
            (Weights::Registers, _) => line.weights = Kept::Registers(line.read_weights()),
            (Weights::Shared, Some((tile, ready))) => {
                line.share_weights(tile, ready);
                line.weights = Kept::Shared(tile);
            }
            _ => {}
        }
        line
    }

    /// The thread's units of the weights, from global memory.
    fn read_weights(&self) -> Vec<Vec<Raw<E>>> {
        let all = self.io.vectors.iter();
        all.map(|&v| self.raw(self.within(v, 0u64.reg()))).collect()
    }

    /// The threads of the first row bring the weights to shared memory for all.
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
    fn raw(&self, from: Global<E>) -> Vec<Raw<E>> {
        let units = self.seat.units(self.c).into_iter();
        units.map(|(u, _)| Raw::load(from, u, self.c)).collect()
    }

    /// The thread's values.
    fn held(&self, raw: Vec<Raw<E>>) -> Held {
        let units = self.seat.units(self.c);
        Held {
            units: raw.into_iter().map(Raw::widen).collect(),
            inside: units.into_iter().map(|(_, inside)| inside).collect(),
        }
    }

    /// The thread's outputs from its values: `write` takes each unit.
    fn solve(&self, held: &Held, write: impl Fn(Unit, Raw<E>)) {
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
    fn solve_to_global(&self, held: &Held, row: Reg<u32>) {
        let y = self.within(self.io.y, row.mul_wide(self.io.y_stride));
        let there = row.lt(self.io.rows);
        self.solve(held, |unit, out| {
            if_(there, || out.store(y, unit, self.c));
        });
    }

    /// A row of x that exists: past the last, the last again.
    fn source(&self, row: Reg<u32>) -> Global<E> {
        let row = row.min(self.io.rows - 1);
        self.within(self.io.x, row.mul_wide(self.io.x_stride))
    }
}

/// Copies this CTA's part of the rows of a block into a slot.
fn fetch<E: Cell>(
    io: &Io<E>,
    c: &Config,
    part: Part,
    first: Reg<u32>,
    slot: &Slot<Tile<E>, Filling>,
) {
    let size = c.unit(Io::<E>::SIZE);
    for r in 0..c.block {
        let row = (first + r).min(io.rows - 1);
        let from = io.x.offset(row.mul_wide(io.x_stride));
        let to = slot
            .tiles()
            .slice(r..r + 1, 0..c.slot_row() / Io::<E>::SIZE);
        slot.load_bytes(to, from.address(part.first * size), part.count * VECTOR);
    }
}

/// A unit in shared memory.
struct Spot<E> {
    tile: TileRef<E>,
    row: Reg<u32>,
    col: Reg<u32>,
}

impl<E: Cell> Spot<E> {
    /// A unit of a row of a slot.
    fn in_slot(tile: TileRef<E>, row: Reg<u32>, unit: Unit, c: &Config) -> Self {
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
    fn store(self, raw: Raw<E>) {
        match raw {
            Raw::Vector(words) => self.tile.store_as(self.row, self.col, words),
            Raw::One(x) => self.tile.store(self.row, self.col, x),
        }
    }
}

impl<K: RowOp, E: Cell> Line<'_, K, E> {
    /// Takes the thread's values out of a slot, which is free then.
    fn take(&self, slot: Slot<Tile<E>, Reading>) -> Held {
        let read =
            |(unit, _): (Unit, _)| Spot::in_slot(slot.tiles(), self.seat.row, unit, self.c).load();
        let raw = self.seat.units(self.c).into_iter().map(read).collect();
        slot.release();
        self.held(raw)
    }
}

/// The kernel of a config.
pub(super) fn build<K: RowOp, E: Cell>(
    c: &Config,
    options: &K::Options,
    target: &Target,
) -> Result<Kernel, BuildErrors> {
    let name = K::NAME.replace('-', "_");
    Kernel::build(&name, target, |k| {
        if c.cluster > 1 {
            k.cluster(c.cluster, 1, 1);
        }
        let io = Io::<E>::declare(k, c, K::vectors(options), &K::scalars(options));
        match c.form {
            Form::Direct => direct::<K, E>(k, c, &io),
            Form::DoubleBuffer => double_buffer::<K, E>(k, c, &io),
            Form::Specialized => specialized::<K, E>(k, c, &io),
            Form::ThreeRoles => three_roles::<K, E>(k, c, &io),
            Form::TwoSweeps => super::sweeps::two_sweeps::<K, E>(k, c, &io),
        }
    })
}

/// Every thread loads its part of a row, and stores it.
fn direct<K: RowOp, E: Cell>(k: Builder, c: &Config, io: &Io<E>) {
    let shared = Shared::<K, E>::declare(k, c, io);
    k.role("all").warps(c.warps()).body(|| {
        let line = Line::new(c, io, shared);
        io.each_block(c, |first| {
            let row = first + line.seat.row;
            let held = line.held(line.raw(line.source(row)));
            line.solve_to_global(&held, row);
        });
    });
}

/// Every warp computes; one thread keeps the copies of the next block in flight.
fn double_buffer<K: RowOp, E: Cell>(k: Builder, c: &Config, io: &Io<E>) {
    let shared = Shared::<K, E>::declare(k, c, io);
    let cols = c.slot_row() / Io::<E>::SIZE;
    let rows = k.ring("rows", c.stages, |s| s.plain::<E>(c.block, cols));
    k.role("all").warps(c.warps()).body(|| {
        let line = Line::new(c, io, shared);
        let solve = |first: Reg<u32>| {
            let held = line.take(rows.wait());
            line.solve_to_global(&held, first + line.seat.row);
        };
        // One block ahead: fetch this one, then solve the one before it.
        let (before, any) = (Var::new(0u32), Var::new(0u32));
        io.each_block(c, |first| {
            elect(|| {
                let slot = rows.acquire();
                fetch(io, c, line.part, first, &slot);
                slot.commit();
            });
            if_(any.get().ne(0u32), || solve(before.get()));
            before.set(first);
            any.set(1u32);
        });
        if_(any.get().ne(0u32), || solve(before.get()));
    });
}

/// load → compute; the outputs go from registers to global memory.
fn specialized<K: RowOp, E: Cell>(k: Builder, c: &Config, io: &Io<E>) {
    let shared = Shared::<K, E>::declare(k, c, io);
    let cols = c.slot_row() / Io::<E>::SIZE;
    let rows = k.ring("rows", c.stages, |s| s.plain::<E>(c.block, cols));
    let queue = k.work_queue("queue", c.queue_stages());
    k.role("compute").warps(c.warps()).body(|| {
        let line = Line::new(c, io, shared);
        queue.each(io.blocks(c), |block| {
            let held = line.take(rows.wait());
            line.solve_to_global(&held, block * c.block + line.seat.row);
        });
    });
    k.role("load").warps(1).body(|| load(c, io, queue, rows));
}

/// The loader of the ring, which takes blocks from the queue.
fn load<E: Cell>(c: &Config, io: &Io<E>, queue: WorkQueue, rows: Ring<Tile<E>>) {
    elect(|| {
        let part = Part::new(io.units(c), c);
        queue.fetch_each(io.blocks(c), |block| {
            let first = block * c.block;
            let slot = rows.acquire();
            fetch(io, c, part, first, &slot);
            slot.commit();
        });
    });
}

/// load → compute → store.
fn three_roles<K: RowOp, E: Cell>(k: Builder, c: &Config, io: &Io<E>) {
    let shared = Shared::<K, E>::declare(k, c, io);
    let cols = c.slot_row() / Io::<E>::SIZE;
    let rows = k.ring("rows", c.stages, |s| s.plain::<E>(c.block, cols));
    let outs = k.ring("outs", c.stages, |s| s.plain::<E>(c.block, cols));
    let queue = k.work_queue("queue", c.queue_stages());
    k.role("compute").warps(c.warps()).body(|| {
        let line = Line::new(c, io, shared);
        queue.each(io.blocks(c), |_| {
            let held = line.take(rows.wait());
            let out = outs.acquire();
            line.solve(&held, |unit, raw| {
                Spot::in_slot(out.tiles(), line.seat.row, unit, c).store(raw);
            });
            out.commit();
        });
    });
    k.role("load").warps(1).body(|| load(c, io, queue, rows));
    k.role("store").warps(1).body(|| {
        elect(|| {
            let part = Part::new(io.units(c), c);
            let size = c.unit(Io::<E>::SIZE);
            queue.each(io.blocks(c), |block| {
                let slot = outs.wait();
                for r in 0..c.block {
                    let row = block * c.block + r;
                    if_(row.lt(io.rows), || {
                        let to = io.y.offset(row.mul_wide(io.y_stride));
                        let from = slot.tiles().slice(r..r + 1, 0..cols);
                        bulk_store(from, to.address(part.first * size), part.count * VECTOR);
                    });
                }
                bulk_commit();
                bulk_wait_read(0);
                slot.release();
            });
        });
    });
}
