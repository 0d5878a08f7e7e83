//! The forms whose threads hold a row: direct, double-buffer, specialized, three-roles.

use super::cell::{Cell, VECTOR};
use super::config::{Config, Form};
use super::meet::{self, Meet};
use super::op::{Given, Held, RowOp};
use super::raw::Raw;
use super::seat::{Io, Part, Seat, Unit};
use warpline_ir::build::*;
use warpline_ir::{BuildErrors, Kernel};

/// What a form is written with.
struct Line<'a, K, E: Cell> {
    c: &'a Config,
    io: &'a Io<E>,
    meet: Option<Meet<K>>,
    part: Part,
    seat: Seat,
    given: Given,
    /// The thread's units of the weights, where they stay in registers.
    weights: Vec<Vec<Raw<E>>>,
    /// Rows done so far, where records meet.
    turn: Var<u32>,
}

impl<'a, K: RowOp, E: Cell> Line<'a, K, E> {
    fn new(c: &'a Config, io: &'a Io<E>, meet: Option<Meet<K>>) -> Self {
        let part = Part::new(io.units(c), c);
        let seat = Seat::new(part, c);
        let mut line = Self {
            c,
            io,
            meet,
            part,
            seat,
            given: Given {
                cols: io.cols.cast(),
                scalars: io.scalars.clone(),
            },
            weights: Vec::new(),
            turn: Var::new(0u32),
        };
        if c.hold {
            line.weights = line.weights();
        }
        line
    }

    /// The thread's units of the weights.
    fn weights(&self) -> Vec<Vec<Raw<E>>> {
        let all = self.io.vectors.iter();
        all.map(|&v| self.raw(self.within(v, 0u64.reg()))).collect()
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
        let base = K::base(held);
        let kept = held.map(|x| K::keep(base, x));
        let mut stat = meet::lanes::<K>(K::measure(base, &kept), c.threads.min(32));
        if let Some(meet) = &self.meet {
            let warp = match c.warps_of_row() {
                1 => 0u32.reg(),
                n => warp_in_role() % n,
            };
            stat = meet.merge(stat, self.turn.get(), self.seat.row, warp);
            self.turn.set(self.turn.get() + 1);
        }
        let factors = K::factors(&stat, base, &self.given);
        let again = if c.hold { Vec::new() } else { self.weights() };
        let weights = if c.hold { &self.weights } else { &again };
        for (i, (unit, inside)) in self.seat.units(c).into_iter().enumerate() {
            let weights: Vec<Vec<Reg<f32>>> =
                weights.iter().map(|w| w[i].clone().widen()).collect();
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

/// The thread's units in its row of a tile.
fn in_tile<E: Cell>(tile: TileRef<E>, unit: Unit, c: &Config) -> (TileRef<E>, Reg<u32>) {
    let size = c.unit(Io::<E>::SIZE);
    let cols = c.slot_row() / Io::<E>::SIZE;
    let from = tile.slice(0..c.block, unit.plus * size..cols);
    (from, unit.first * size)
}

impl<K: RowOp, E: Cell> Line<'_, K, E> {
    /// Takes the thread's values out of a slot, which is free then.
    fn take(&self, slot: Slot<Tile<E>, Reading>) -> Held {
        let read = |(unit, _): (Unit, _)| {
            let (tile, col) = in_tile(slot.tiles(), unit, self.c);
            Raw::Vector(tile.load_as(self.seat.row, col))
        };
        let raw = self.seat.units(self.c).into_iter().map(read).collect();
        slot.release();
        self.held(raw)
    }
}

/// The kernel of a config.
pub(super) fn build<K: RowOp, E: Cell>(
    c: &Config,
    options: &K::Options,
) -> Result<Kernel, BuildErrors> {
    let name = K::NAME.replace('-', "_");
    Kernel::build(&name, |k| {
        if c.cluster > 1 {
            k.cluster(c.cluster, 1, 1);
        }
        let io = Io::<E>::declare(k, K::vectors(options), &K::scalars(options));
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
    let meet = Meet::<K>::declare(k, c);
    k.role("all").warps(c.warps()).body(|| {
        let line = Line::new(c, io, meet);
        io.each_block(c, |first| {
            let row = first + line.seat.row;
            let held = line.held(line.raw(line.source(row)));
            line.solve_to_global(&held, row);
        });
    });
}

/// Every warp computes; one thread keeps the copies of the next block in flight.
fn double_buffer<K: RowOp, E: Cell>(k: Builder, c: &Config, io: &Io<E>) {
    let meet = Meet::<K>::declare(k, c);
    let cols = c.slot_row() / Io::<E>::SIZE;
    let rows = k.ring("rows", c.stages, |s| s.plain::<E>(c.block, cols));
    k.role("all").warps(c.warps()).body(|| {
        let line = Line::new(c, io, meet);
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
    let meet = Meet::<K>::declare(k, c);
    let cols = c.slot_row() / Io::<E>::SIZE;
    let rows = k.ring("rows", c.stages, |s| s.plain::<E>(c.block, cols));
    let queue = k.work_queue("queue", 2 * c.stages);
    k.role("compute").warps(c.warps()).body(|| {
        let line = Line::new(c, io, meet);
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
    let meet = Meet::<K>::declare(k, c);
    let cols = c.slot_row() / Io::<E>::SIZE;
    let rows = k.ring("rows", c.stages, |s| s.plain::<E>(c.block, cols));
    let outs = k.ring("outs", c.stages, |s| s.plain::<E>(c.block, cols));
    let queue = k.work_queue("queue", 4 * c.stages);
    k.role("compute").warps(c.warps()).body(|| {
        let line = Line::new(c, io, meet);
        queue.each(io.blocks(c), |_| {
            let held = line.take(rows.wait());
            let out = outs.acquire();
            line.solve(&held, |unit, raw| {
                let (tile, col) = in_tile(out.tiles(), unit, c);
                if let Raw::Vector(words) = raw {
                    tile.store_as(line.seat.row, col, words);
                }
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
