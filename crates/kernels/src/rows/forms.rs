//! The forms: a kernel's parameters, rings and roles.

use super::cell::{Cell, VECTOR};
use super::config::{Config, Form};
use super::context::{RowContext, Shared, Spot};
use super::op::RowOp;
use super::seat::{Io, Part};
use super::sweeps::two_sweeps;
use half::{bf16, f16};
use warpline_family::float::Float;
use warpline_ir::build::*;

/// Declares the kernel of an op, an element type and a config.
pub(super) fn roles<K: RowOp>(k: Builder, dtype: Float, options: &K::Options, c: &Config) {
    match dtype {
        Float::F32 => roles_of::<K, f32>(k, options, c),
        Float::F16 => roles_of::<K, f16>(k, options, c),
        Float::Bf16 => roles_of::<K, bf16>(k, options, c),
    }
}

fn roles_of<K: RowOp, E: Cell>(k: Builder, options: &K::Options, c: &Config) {
    if c.cluster > 1 {
        k.cluster(c.cluster, 1, 1);
    }
    let io = Io::<E>::declare(k, c, K::vectors(options), &K::scalars(options));
    match c.form {
        Form::Direct => direct::<K, E>(k, c, &io),
        Form::DoubleBuffer => double_buffer::<K, E>(k, c, &io),
        Form::Specialized => specialized::<K, E>(k, c, &io),
        Form::ThreeRoles => three_roles::<K, E>(k, c, &io),
        Form::TwoSweeps => two_sweeps::<K, E>(k, c, &io),
    }
}

/// Every thread loads its part of a row, and stores it.
fn direct<K: RowOp, E: Cell>(k: Builder, c: &Config, io: &Io<E>) {
    let shared = Shared::<K, E>::declare(k, c, io);
    k.role("all").warps(c.warps()).body(|| {
        let cx = RowContext::new(c, io, shared);
        io.each_block(c, |first| {
            let index = first + cx.seat.row;
            let held = cx.held(cx.raw(cx.source(index)));
            cx.solve_to_global(&held, index);
        });
    });
}

/// Every warp computes; one thread keeps the copies of the next block in flight.
fn double_buffer<K: RowOp, E: Cell>(k: Builder, c: &Config, io: &Io<E>) {
    let shared = Shared::<K, E>::declare(k, c, io);
    let cols = c.slot_row() / Io::<E>::SIZE;
    let rows = k.ring("rows", c.stages, |s| s.plain::<E>(c.block, cols));
    k.role("all").warps(c.warps()).body(|| {
        let cx = RowContext::new(c, io, shared);
        let solve = |first: Reg<u32>| {
            let held = cx.take(rows.wait());
            cx.solve_to_global(&held, first + cx.seat.row);
        };
        // One block ahead: load this one, then solve the one before it.
        let (before, any) = (Var::new(0u32), Var::new(0u32));
        io.each_block(c, |first| {
            elect(|| {
                let slot = rows.acquire();
                load_block(io, c, cx.part, first, &slot);
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
        let cx = RowContext::new(c, io, shared);
        queue.each(io.blocks(c), |block| {
            let held = cx.take(rows.wait());
            cx.solve_to_global(&held, block * c.block + cx.seat.row);
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
            load_block(io, c, part, first, &slot);
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
        let cx = RowContext::new(c, io, shared);
        queue.each(io.blocks(c), |_| {
            let held = cx.take(rows.wait());
            let out = outs.acquire();
            cx.solve(&held, |unit, raw| {
                Spot::in_slot(out.tiles(), cx.seat.row, unit, c).store(raw);
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

/// Copies this CTA's part of the rows of a block into a slot.
fn load_block<E: Cell>(
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
