//! The schedules: parameters, rings and roles of a kernel.

use super::config::{Config, Schedule};
use super::context::{RowContext, SharedState, SharedUnit};
use super::element::{RowElement, VECTOR_BYTES};
use super::op::RowOp;
use super::partition::{RowParams, RowSegment};
use super::two_pass::two_pass;
use half::{bf16, f16};
use warpline_family::float::FloatType;
use warpline_ir::builder::*;

/// Declares the kernel of an op, an element type and a config.
pub(super) fn roles<K: RowOp>(k: Builder, dtype: FloatType, options: &K::Options, c: &Config) {
    match dtype {
        FloatType::F32 => roles_for_type::<K, f32>(k, options, c),
        FloatType::F16 => roles_for_type::<K, f16>(k, options, c),
        FloatType::Bf16 => roles_for_type::<K, bf16>(k, options, c),
    }
}

fn roles_for_type<K: RowOp, E: RowElement>(k: Builder, options: &K::Options, c: &Config) {
    if c.cluster > 1 {
        k.cluster(c.cluster, 1, 1);
    }
    let params = RowParams::<E>::declare(k, c, K::vectors(options), &K::scalars(options));
    match c.schedule {
        Schedule::Direct => direct::<K, E>(k, c, &params),
        Schedule::DoubleBuffer => double_buffer::<K, E>(k, c, &params),
        Schedule::Specialized => specialized::<K, E>(k, c, &params),
        Schedule::ThreeRoles => three_roles::<K, E>(k, c, &params),
        Schedule::TwoPass => two_pass::<K, E>(k, c, &params),
    }
}

/// Every thread loads, computes and stores its part of a row.
fn direct<K: RowOp, E: RowElement>(k: Builder, c: &Config, params: &RowParams<E>) {
    let shared = SharedState::<K, E>::declare(k, c, params);
    k.role("all").warps(c.warps()).body(|| {
        let cx = RowContext::new(c, params, shared);
        params.for_each_block(c, |first| {
            let index = first + cx.thread.row;
            let values = cx.widen_units(cx.load_units(cx.input_row(index)));
            cx.compute_to_global(&values, index);
        });
    });
}

/// Every warp computes; one thread keeps the copies of the next block in flight.
fn double_buffer<K: RowOp, E: RowElement>(k: Builder, c: &Config, params: &RowParams<E>) {
    let shared = SharedState::<K, E>::declare(k, c, params);
    let cols = c.slot_row_bytes() / RowParams::<E>::SIZE;
    let rows = k.ring("rows", c.stages, |s| s.unswizzled::<E>(c.block, cols));
    k.role("all").warps(c.warps()).body(|| {
        let cx = RowContext::new(c, params, shared);
        let compute = |first: Reg<u32>| {
            let values = cx.read_slot(rows.wait());
            cx.compute_to_global(&values, first + cx.thread.row);
        };
        // Software pipeline of depth one: load this block, then compute the previous one.
        let (previous, has_previous) = (Var::new(0u32), Var::new(0u32));
        params.for_each_block(c, |first| {
            elect(|| {
                let slot = rows.acquire();
                load_block(params, c, cx.segment, first, &slot);
                slot.commit();
            });
            if_(has_previous.get().ne(0u32), || compute(previous.get()));
            previous.set(first);
            has_previous.set(1u32);
        });
        if_(has_previous.get().ne(0u32), || compute(previous.get()));
    });
}

/// load → compute; outputs go from registers to global memory.
fn specialized<K: RowOp, E: RowElement>(k: Builder, c: &Config, params: &RowParams<E>) {
    let shared = SharedState::<K, E>::declare(k, c, params);
    let cols = c.slot_row_bytes() / RowParams::<E>::SIZE;
    let rows = k.ring("rows", c.stages, |s| s.unswizzled::<E>(c.block, cols));
    let queue = k.work_queue("queue", c.queue_stages());
    k.role("compute").warps(c.warps()).body(|| {
        let cx = RowContext::new(c, params, shared);
        queue.each(params.blocks(c), |block| {
            let values = cx.read_slot(rows.wait());
            cx.compute_to_global(&values, block * c.block + cx.thread.row);
        });
    });
    k.role("load")
        .warps(1)
        .body(|| load(c, params, queue, rows));
}

/// Takes blocks from the work queue and fills the ring.
fn load<E: RowElement>(c: &Config, params: &RowParams<E>, queue: WorkQueue, rows: Ring<Tile<E>>) {
    elect(|| {
        let segment = RowSegment::new(params.units(c), c);
        queue.fetch_each(params.blocks(c), |block| {
            let first = block * c.block;
            let slot = rows.acquire();
            load_block(params, c, segment, first, &slot);
            slot.commit();
        });
    });
}

/// load → compute → store.
fn three_roles<K: RowOp, E: RowElement>(k: Builder, c: &Config, params: &RowParams<E>) {
    let shared = SharedState::<K, E>::declare(k, c, params);
    let cols = c.slot_row_bytes() / RowParams::<E>::SIZE;
    let rows = k.ring("rows", c.stages, |s| s.unswizzled::<E>(c.block, cols));
    let outs = k.ring("outs", c.stages, |s| s.unswizzled::<E>(c.block, cols));
    let queue = k.work_queue("queue", c.queue_stages());
    k.role("compute").warps(c.warps()).body(|| {
        let cx = RowContext::new(c, params, shared);
        queue.each(params.blocks(c), |_| {
            let values = cx.read_slot(rows.wait());
            let out = outs.acquire();
            cx.compute(&values, |unit, raw| {
                SharedUnit::in_slot(out.tiles(), cx.thread.row, unit, c).store(raw);
            });
            out.commit();
        });
    });
    k.role("load")
        .warps(1)
        .body(|| load(c, params, queue, rows));
    k.role("store").warps(1).body(|| {
        elect(|| {
            let segment = RowSegment::new(params.units(c), c);
            let size = c.unit_len(RowParams::<E>::SIZE);
            queue.each(params.blocks(c), |block| {
                let slot = outs.wait();
                for r in 0..c.block {
                    let row = block * c.block + r;
                    if_(row.lt(params.rows), || {
                        let to = params.y.offset(row.mul_wide(params.y_stride));
                        let from = slot.tiles().slice(r..r + 1, 0..cols);
                        bulk_store(
                            from,
                            to.address(segment.first * size),
                            segment.count * VECTOR_BYTES,
                        );
                    });
                }
                bulk_commit();
                bulk_wait_read(0);
                slot.release();
            });
        });
    });
}

/// Copies this CTA's segment of the rows of a block into a slot.
fn load_block<E: RowElement>(
    params: &RowParams<E>,
    c: &Config,
    segment: RowSegment,
    first: Reg<u32>,
    slot: &Slot<Tile<E>, Producing>,
) {
    let size = c.unit_len(RowParams::<E>::SIZE);
    for r in 0..c.block {
        let row = (first + r).min(params.rows - 1);
        let from = params.x.offset(row.mul_wide(params.x_stride));
        let to = slot
            .tiles()
            .slice(r..r + 1, 0..c.slot_row_bytes() / RowParams::<E>::SIZE);
        slot.load_bytes(
            to,
            from.address(segment.first * size),
            segment.count * VECTOR_BYTES,
        );
    }
}
