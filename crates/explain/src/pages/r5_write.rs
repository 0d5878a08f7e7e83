//! Threads access shared memory through the generic proxy, and TMA and wgmma through the async
//! proxy. A barrier orders threads, but not the two proxies: an async access may overtake a generic
//! write that was issued before it. `fence.proxy.async` in the writing threads orders their writes
//! before later async accesses. Without it, TMA stores or wgmma operands contain old bytes in some
//! runs.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let y = k.pointer::<f32>("y");
    let tile = k.tile::<f32>("tile", 4, 32).unswizzled().declare().whole();
    k.role("all").warps(4).body(|| {
        tile.store(warp_id(), lane_id(), 1.0f32);
        cta_sync(); // orders the threads, not the proxies
        elect(|| {
            bulk_store(tile, y.address(0u32), 512);
            bulk_commit();
            bulk_wait_read(0);
        });
    });
}

pub(super) fn repaired(k: Builder) {
    let y = k.pointer::<f32>("y");
    let tile = k.tile::<f32>("tile", 4, 32).unswizzled().declare().whole();
    k.role("all").warps(4).body(|| {
        tile.store(warp_id(), lane_id(), 1.0f32);
        fence_async();
        cta_sync();
        elect(|| {
            bulk_store(tile, y.address(0u32), 512);
            bulk_commit();
            bulk_wait_read(0);
        });
    });
}
