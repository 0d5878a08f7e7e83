//! The GPU starts the CTAs of a grid as space becomes free, and a running CTA keeps its SM until it
//! ends. If CTAs wait for a flag of a CTA that has not started yet, no space ever becomes free, and
//! the grid hangs. This happens only with more CTAs than the GPU holds, so a test with a small grid
//! passes. If a kernel is declared co-resident, the runtime rejects a launch whose CTAs do not all
//! fit on the GPU. A kernel with `Flags` is declared co-resident.

use warpline_ir::builder::*;
use warpline_ir::ops::atomic::AtomicOp;
use warpline_ir::{MemoryOrder, Scope};

pub(super) fn broken(k: Builder) {
    let count = k.pointer::<u32>("count");
    k.role("all").body(|| {
        elect(|| {
            let word = count.atomic_ref(0u32);
            word.reduce(AtomicOp::Add, 1u32, MemoryOrder::release(Scope::Gpu));
            while_(
                || {
                    let arrived = word.load(MemoryOrder::acquire(Scope::Gpu));
                    arrived.lt(grid_ctas()) // some CTAs may not start before others end
                },
                || nanosleep(100),
            );
        });
    });
}

pub(super) fn repaired(k: Builder) {
    let count = k.flags("count"); // declares the kernel co-resident
    k.role("all").body(|| {
        count.signal(0u32);
        count.wait(0u32, grid_ctas());
    });
}
