//! Warps of a CTA run in any order. Only a barrier orders an access of one warp before an access of
//! another: an arrival after the first access and a wait before the second. Without it, the second
//! warp may read old bytes, or overwrite bytes that the first one still reads. The results are
//! wrong in some runs, often only on a loaded GPU.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let out = k.pointer::<u32>("out");
    let tile = k.tile::<u32>("tile", 1, 32).unswizzled().declare().whole();
    k.role("write")
        .body(|| tile.store(0u32, lane_id(), lane_id()));
    k.role("read").body(|| {
        out.store(lane_id(), tile.load(0u32, lane_id())); // the tile may not be written yet
    });
}

pub(super) fn repaired(k: Builder) {
    let out = k.pointer::<u32>("out");
    let tile = k.tile::<u32>("tile", 1, 32).unswizzled().declare().whole();
    let ready = k.named_barrier("ready");
    k.role("write").body(|| {
        tile.store(0u32, lane_id(), lane_id());
        ready.arrive(64);
    });
    k.role("read").body(|| {
        ready.sync(64);
        out.store(lane_id(), tile.load(0u32, lane_id()));
    });
}
