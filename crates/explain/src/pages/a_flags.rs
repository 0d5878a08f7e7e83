//! A flag in global memory connects CTAs, but the proof covers one CTA or one cluster. It assumes
//! that the flags are zero at launch, and that every flag is set as often as its waits require. A
//! buffer with the flags of the previous launch breaks the assumption: the waits return at once,
//! and the CTAs read old data. A kernel that does not wait needs no assumption: for example, the
//! last CTA to arrive does the rest.

use warpline_ir::builder::*;
use warpline_ir::ops::atomic::AtomicOp;
use warpline_ir::{MemoryOrder, Scope};

pub(super) fn broken(k: Builder) {
    let (flags, parts) = (k.flags("flags"), k.pointer::<u32>("parts"));
    let y = k.pointer::<u32>("y");
    k.role("all").body(|| {
        elect(|| parts.store(cta_id(), 7u32));
        flags.signal(0u32);
        flags.wait(0u32, grid_ctas()); // passes too early if the flag is not zero at launch
        elect(|| y.store(cta_id(), parts.load(0u32) + parts.load(1u32)));
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
                y.store(0u32, parts.load(0u32) + parts.load(1u32)); // the last CTA, no wait
            });
        });
    });
}
