//! Threads read shared memory through the generic proxy, and a TMA copy writes it through the async
//! proxy. A barrier after the reads orders the threads, but the copy may still overtake the reads.
//! `fence.proxy.async` in the reading threads orders their reads before the copy. Without it, a
//! thread may see bytes of the next tile. A ring emits the fence when a slot is released.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let (n, x, y) = (
        k.param::<u32>("n"),
        k.pointer::<f32>("x"),
        k.pointer::<f32>("y"),
    );
    let tile = k.tile::<f32>("tile", 1, 32).unswizzled().declare().whole();
    let full = k.barrier("full", 1).arrivals(1).at(0u32);
    k.role("all").body(|| {
        steps(n).each(|i| {
            elect(|| {
                full.arrive_expect(128u32);
                bulk_load(tile, x.address(i * 32), 128u32, full);
            });
            full.wait(i % 2);
            y.store(i * 32 + lane_id(), tile.load(0u32, lane_id()));
            warp_sync(); // the next copy may overtake the read
        });
    });
}

pub(super) fn repaired(k: Builder) {
    let (n, x, y) = (
        k.param::<u32>("n"),
        k.pointer::<f32>("x"),
        k.pointer::<f32>("y"),
    );
    let tile = k.tile::<f32>("tile", 1, 32).unswizzled().declare().whole();
    let full = k.barrier("full", 1).arrivals(1).at(0u32);
    k.role("all").body(|| {
        steps(n).each(|i| {
            elect(|| {
                full.arrive_expect(128u32);
                bulk_load(tile, x.address(i * 32), 128u32, full);
            });
            full.wait(i % 2);
            y.store(i * 32 + lane_id(), tile.load(0u32, lane_id()));
            fence_async();
            warp_sync();
        });
    });
}
