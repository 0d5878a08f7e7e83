//! Atomics, reductions, strong loads and stores.

use crate::columns::{BufferSide, Columns};
use crate::trial::OpTrial;
use warpline_ir::builder::*;
use warpline_ir::ops::atomic::{Atomic, AtomicOp, AtomicReduce, StrongLoad, StrongStore};
use warpline_ir::{MemoryOrder, Scope, Semantics, Type};

const SCOPES: [Scope; 4] = [Scope::Cta, Scope::Cluster, Scope::Gpu, Scope::Sys];

/// Every form, on global memory that only one thread accesses.
pub(crate) fn columns() -> Vec<Columns> {
    let [mut atomic, mut reduce, mut load, mut store] =
        ["atomic", "reduce", "strong_load", "strong_store"].map(Columns::new);
    for ty in Type::ALL {
        for op in AtomicOp::ALL {
            for n in [1, 2, 4, 8] {
                let order = MemoryOrder::relaxed(Scope::Gpu);
                atomic_form(&mut atomic, op, ty, n, order);
                reduce_form(&mut reduce, op, ty, n, order);
            }
        }
    }
    for scope in SCOPES {
        for sem in [
            Semantics::Relaxed,
            Semantics::Acquire,
            Semantics::Release,
            Semantics::AcqRel,
        ] {
            let order = MemoryOrder { sem, scope };
            atomic_form(&mut atomic, AtomicOp::Add, Type::U32, 1, order);
            reduce_form(&mut reduce, AtomicOp::Add, Type::U32, 1, order);
            for ty in [Type::U32, Type::F32, Type::U64] {
                let dst = load.reg(ty);
                load.memory_form(BufferSide::Input, (ty, 1), true, |at| {
                    StrongLoad { ty, dst, at, order }.into()
                });
                let src = store.arg(ty);
                store.memory_form(BufferSide::Output, (ty, 1), false, |at| {
                    StrongStore { ty, src, at, order }.into()
                });
            }
        }
    }
    vec![atomic, reduce, load, store]
}

fn atomic_form(c: &mut Columns, op: AtomicOp, ty: Type, n: usize, order: MemoryOrder) {
    let dst = (0..n).map(|_| c.reg(ty)).collect();
    let values = (0..n).map(|_| c.arg(ty)).collect();
    let compare = (op == AtomicOp::Cas).then(|| c.arg(ty));
    c.memory_form(BufferSide::Output, (ty, n), true, |at| {
        Atomic {
            op,
            ty,
            dst,
            at,
            values,
            compare,
            order,
        }
        .into()
    });
}

fn reduce_form(c: &mut Columns, op: AtomicOp, ty: Type, n: usize, order: MemoryOrder) {
    let values = (0..n).map(|_| c.arg(ty)).collect();
    c.memory_form(BufferSide::Output, (ty, n), true, |at| {
        AtomicReduce {
            op,
            ty,
            at,
            values,
            order,
        }
        .into()
    });
}

pub(crate) fn trials() -> Vec<OpTrial> {
    vec![contended(), shared(), published()]
}

/// The ops whose final value does not depend on the order.
const COMMUTATIVE_OPS: [AtomicOp; 6] = [
    AtomicOp::Add,
    AtomicOp::Min,
    AtomicOp::Max,
    AtomicOp::And,
    AtomicOp::Or,
    AtomicOp::Xor,
];

/// All threads of several CTAs update the same words, in global and in shared memory.
fn contended() -> OpTrial {
    let kernel = super::kernel("contended", |k| {
        let (x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
        let t = k.tile::<u32>("t", 6, 8).unswizzled().declare();
        k.role("all").warps(4).body(|| {
            let value = x.load(cta_id() * 128 + thread_id());
            let bin = value & 7;
            if_(thread_id().lt(48u32), || {
                t.whole()
                    .store(thread_id() / 8, thread_id() & 7, value.min(0u32));
            });
            cta_sync();
            for (row, op) in (0u32..).zip(COMMUTATIVE_OPS) {
                let order = MemoryOrder::relaxed(Scope::Gpu);
                out.atomic_ref(bin + row * 8).reduce(op, value, order);
                let order = MemoryOrder::relaxed(Scope::Cta);
                // The returned old value depends on the order; the final value does not.
                t.whole().atomic_ref(row, bin).atomic(op, value, order);
            }
            cta_sync();
            if_(thread_id().lt(48u32), || {
                let result = t.whole().load(thread_id() / 8, thread_id() & 7);
                out.store(cta_id() * 48 + thread_id() + 48, result);
            });
        });
    });
    let initial: Vec<u32> = super::words(5 * 48, 9);
    OpTrial::new(
        "atomic and reduce, contended",
        &["atomic", "reduce"],
        kernel,
    )
    .ctas(4)
    .input(&super::words(512, 8))
    .in_out("words", Type::U32, &initial)
}

/// Every op on one shared-memory word per thread: the old and the new value.
fn shared() -> OpTrial {
    let ops = AtomicOp::ALL.into_iter().filter(|op| *op != AtomicOp::Cas);
    let ops: Vec<AtomicOp> = ops.collect();
    let count = ops.len() as u32 + 1;
    let kernel = super::kernel("atomic_shared", |k| {
        let (x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
        let t = k.tile::<u32>("t", 1, 64).unswizzled().declare();
        k.role("all").warps(2).body(|| {
            let order = MemoryOrder::acq_rel(Scope::Cta);
            let thread = thread_id();
            let word = t.whole().atomic_ref(0u32, thread);
            let run_op = |i: u32, op: &dyn Fn(Reg<u32>) -> Reg<u32>| {
                t.whole().store(0u32, thread, x.load(thread + i * 128));
                let old = op(x.load(thread + i * 128 + 64));
                out.store(thread + i * 128, old);
                out.store(thread + i * 128 + 64, t.whole().load(0u32, thread));
            };
            for (i, &op) in (0u32..).zip(&ops) {
                run_op(i, &|value| word.atomic(op, value, order));
            }
            run_op(count - 1, &|value| {
                word.compare_swap(x.load(thread + (count - 1) * 128), value, order)
            });
        });
    });
    let n = count as usize * 128;
    OpTrial::new("atomic, shared", &["atomic"], kernel)
        .input(&super::values(Type::U32, n, 10))
        .output("old and new", Type::U32, n)
}

/// One warp writes words and sets a flag; another polls the flag and reads them.
fn published() -> OpTrial {
    let kernel = super::kernel("published", |k| {
        let (x, out) = (k.pointer::<u32>("x"), k.pointer::<u32>("out"));
        let t = k.tile::<u32>("t", 1, 32).unswizzled().declare();
        let flag = k.tile::<u32>("flag", 1, 4).unswizzled().declare();
        k.role("write").warps(1).body(|| {
            elect(|| flag.whole().store(0u32, 0u32, 0u32));
            cta_sync();
            t.whole().store(0u32, lane_id(), x.load(lane_id()));
            warp_sync();
            elect(|| {
                let word = flag.whole().atomic_ref(0u32, 0u32);
                word.store(1u32, MemoryOrder::release(Scope::Cta));
            });
            cta_sync();
        });
        k.role("read").warps(1).body(|| {
            cta_sync();
            let word = flag.whole().atomic_ref(0u32, 0u32);
            while_(
                || word.load(MemoryOrder::acquire(Scope::Cta)).eq(0u32),
                || nanosleep(20),
            );
            // The flag suffices on the GPU, but the checker needs a barrier for shared memory.
            cta_sync();
            out.store(lane_id(), t.whole().load(0u32, lane_id() ^ 3));
        });
    });
    OpTrial::new(
        "strong_load and strong_store, flag",
        &["strong_load", "strong_store"],
        kernel,
    )
    .input(&super::words(32, 11))
    .output("out", Type::U32, 32)
}
