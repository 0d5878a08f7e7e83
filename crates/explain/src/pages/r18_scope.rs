//! The scope of an atomic says which threads see it as one operation. An atomic of CTA scope is
//! atomic only for the threads of its own CTA. If other CTAs update the same word, updates may be
//! lost: two CTAs take the same ticket, in some runs.

use warpline_ir::builder::*;
use warpline_ir::ops::atomic::AtomicOp;
use warpline_ir::{MemoryOrder, Scope};

pub(super) fn broken(k: Builder) {
    let (count, y) = (k.pointer::<u32>("count"), k.pointer::<u32>("y"));
    k.role("all").body(|| {
        let order = MemoryOrder::relaxed(Scope::Cta); // but all CTAs update `count`
        let ticket = count.atomic_ref(0u32).atomic(AtomicOp::Add, 1u32, order);
        y.store(cta_id() * 32 + lane_id(), ticket);
    });
}

pub(super) fn repaired(k: Builder) {
    let (count, y) = (k.pointer::<u32>("count"), k.pointer::<u32>("y"));
    k.role("all").body(|| {
        let order = MemoryOrder::relaxed(Scope::Gpu);
        let ticket = count.atomic_ref(0u32).atomic(AtomicOp::Add, 1u32, order);
        y.store(cta_id() * 32 + lane_id(), ticket);
    });
}
