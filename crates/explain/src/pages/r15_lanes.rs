//! Since Volta, the lanes of a warp do not run in lockstep. A lane that reads a word of shared
//! memory that another lane has written must first pass a `warp_sync` (`bar.warp.sync`), which also
//! orders memory. Without it the read may come first, and ptxas may reorder the two accesses.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let (x, y) = (k.pointer::<f32>("x"), k.pointer::<f32>("y"));
    let tile = k.tile::<f32>("tile", 1, 32).unswizzled();
    let tile = tile.declare().whole();
    k.role("all").body(|| {
        tile.store(0u32, lane_id(), x.load(lane_id()));
        let neighbor = tile.load(0u32, lane_id() ^ 1); // may run before the store of that lane
        y.store(cta_id() * 32 + lane_id(), neighbor);
    });
}

pub(super) fn repaired(k: Builder) {
    let (x, y) = (k.pointer::<f32>("x"), k.pointer::<f32>("y"));
    let tile = k.tile::<f32>("tile", 1, 32).unswizzled();
    let tile = tile.declare().whole();
    k.role("all").body(|| {
        tile.store(0u32, lane_id(), x.load(lane_id()));
        warp_sync();
        let neighbor = tile.load(0u32, lane_id() ^ 1);
        y.store(cta_id() * 32 + lane_id(), neighbor);
    });
}
