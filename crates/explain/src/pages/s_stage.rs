//! A tile with stages is an array of buffers, and a stage index below the number of stages selects
//! one of them. A constant index outside of the array is wrong in every run: the access hits the
//! bytes after the tile. R12.bounds checks computed indices.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let y = k.pointer::<f32>("y");
    let tile = k.tile::<f32>("tile", 1, 32).unswizzled();
    let tile = tile.stages(2).declare();
    k.role("all").body(|| {
        let last = tile.stage(2u32); // the stages are 0 and 1
        last.store(0u32, lane_id(), 1.0);
        y.store(cta_id() * 32 + lane_id(), last.load(0u32, lane_id()));
    });
}

pub(super) fn repaired(k: Builder) {
    let y = k.pointer::<f32>("y");
    let tile = k.tile::<f32>("tile", 1, 32).unswizzled();
    let tile = tile.stages(2).declare();
    k.role("all").body(|| {
        let last = tile.stage(1u32);
        last.store(0u32, lane_id(), 1.0);
        y.store(cta_id() * 32 + lane_id(), last.load(0u32, lane_id()));
    });
}
