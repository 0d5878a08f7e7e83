//! A bulk store runs in the background. `bulk_wait_read` (`cp.async.bulk.wait_group.read`) only
//! waits until the copy engine has read shared memory; the bytes may not be in global memory yet. A
//! flag that is set after this wait lets other CTAs read the row before its bytes arrive. Use
//! `bulk_wait` before the flag.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let (flags, row) = (k.flags("flags"), k.pointer::<u32>("row"));
    let y = k.pointer::<u32>("y");
    let tile = k.tile::<u32>("tile", 1, 32).unswizzled();
    let tile = tile.declare().whole();
    k.role("all").body(|| {
        if_(cta_id().eq(0u32), || {
            tile.store(0u32, lane_id(), 7u32);
            fence_async();
            warp_sync();
            elect(|| {
                bulk_store(tile, row.address(0u32), 128u32);
                bulk_commit();
                bulk_wait_read(0); // waits for the reads of `tile`, not for the writes of `row`
                flags.signal(0u32);
            });
        });
        flags.wait(0u32, 1u32);
        y.store(cta_id() * 32 + lane_id(), row.load(lane_id()));
    });
}

pub(super) fn repaired(k: Builder) {
    let (flags, row) = (k.flags("flags"), k.pointer::<u32>("row"));
    let y = k.pointer::<u32>("y");
    let tile = k.tile::<u32>("tile", 1, 32).unswizzled();
    let tile = tile.declare().whole();
    k.role("all").body(|| {
        if_(cta_id().eq(0u32), || {
            tile.store(0u32, lane_id(), 7u32);
            fence_async();
            warp_sync();
            elect(|| {
                bulk_store(tile, row.address(0u32), 128u32);
                bulk_commit();
                bulk_wait(0); // the writes of `row` are complete
                flags.signal(0u32);
            });
        });
        flags.wait(0u32, 1u32);
        y.store(cta_id() * 32 + lane_id(), row.load(lane_id()));
    });
}
