//! Stores of a GPU thread become visible to other SMs in any order unless a release orders them. A
//! relaxed store of a flag can overtake the data that it announces, and a release of CTA scope does
//! not reach other SMs. The reader then sees the flag and old data, in rare runs.

use warpline_ir::builder::*;
use warpline_ir::ops::atomic::AtomicOp;
use warpline_ir::{MemoryOrder, Scope};

pub(super) fn broken(k: Builder) {
    let (count, parts) = (k.pointer::<u32>("count"), k.pointer::<u32>("parts"));
    let y = k.pointer::<u32>("y");
    k.role("all").body(|| {
        elect(|| {
            parts.store(cta_id(), 7u32);
            let order = MemoryOrder::acquire(Scope::Gpu); // does not release `parts`
            let arrived = count.atomic_ref(0u32).atomic(AtomicOp::Add, 1u32, order);
            if_(arrived.eq(grid_ctas() - 1), || {
                y.store(0u32, parts.load(0u32) + parts.load(1u32)); // the last CTA adds
            });
        });
    });
}

pub(super) fn repaired(k: Builder) {
    let (count, parts) = (k.pointer::<u32>("count"), k.pointer::<u32>("parts"));
    let y = k.pointer::<u32>("y");
    k.role("all").body(|| {
        elect(|| {
            parts.store(cta_id(), 7u32);
            let order = MemoryOrder::acq_rel(Scope::Gpu);
            let arrived = count.atomic_ref(0u32).atomic(AtomicOp::Add, 1u32, order);
            if_(arrived.eq(grid_ctas() - 1), || {
                y.store(0u32, parts.load(0u32) + parts.load(1u32)); // the last CTA adds
            });
        });
    });
}
