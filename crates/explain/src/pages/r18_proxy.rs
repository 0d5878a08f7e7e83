//! Threads access memory through the generic proxy, TMA through the async proxy. A barrier makes
//! the writes of a thread visible to other threads, but not to TMA. Without a `fence.proxy.async`
//! for global memory a TMA load may read old bytes. The result is wrong in some runs.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let x = k.pointer::<f32>("x");
    let tile = k.tile::<f32>("tile", 1, 32).unswizzled();
    let tile = tile.declare().whole();
    let full = k.barrier("full", 1).arrivals(1).at(0u32);
    k.role("all").body(|| {
        let row = cta_id() * 32;
        x.store(row + lane_id(), 1.0);
        warp_sync();
        elect(|| {
            full.arrive_expect(128u32);
            bulk_load(tile, x.address(row), 128u32, full); // may load old bytes
        });
        full.wait(0u32);
    });
}

pub(super) fn repaired(k: Builder) {
    let x = k.pointer::<f32>("x");
    let tile = k.tile::<f32>("tile", 1, 32).unswizzled();
    let tile = tile.declare().whole();
    let full = k.barrier("full", 1).arrivals(1).at(0u32);
    k.role("all").body(|| {
        let row = cta_id() * 32;
        x.store(row + lane_id(), 1.0);
        fence_async_global();
        warp_sync();
        elect(|| {
            full.arrive_expect(128u32);
            bulk_load(tile, x.address(row), 128u32, full);
        });
        full.wait(0u32);
    });
}
