//! Shared memory has 32 banks of 4 bytes. An access of a warp takes as many passes (wavefronts) as
//! its busiest bank has different words. Rows of 128 bytes start at the same bank, so lanes that
//! read one column of a row-major tile need one pass per lane. A swizzle spreads the 16-byte chunks
//! of a column over all banks.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let y = k.pointer::<f32>("y");
    let tile = k.tile::<f32>("tile", 32, 32).unswizzled(); // a column is in one bank
    let tile = tile.declare().whole();
    k.role("all").body(|| {
        tile.store_vec(lane_id(), 0u32, [1.0f32, 2.0, 3.0, 4.0]);
        let values = tile.load_vec::<4>(lane_id(), 0u32);
        y.store_vec((cta_id() * 32 + lane_id()) * 4, values);
    });
}

pub(super) fn repaired(k: Builder) {
    let y = k.pointer::<f32>("y");
    let tile = k.tile::<f32>("tile", 32, 32); // with the 128-byte swizzle
    let tile = tile.declare().whole();
    k.role("all").body(|| {
        tile.store_vec(lane_id(), 0u32, [1.0f32, 2.0, 3.0, 4.0]);
        let values = tile.load_vec::<4>(lane_id(), 0u32);
        y.store_vec((cta_id() * 32 + lane_id()) * 4, values);
    });
}
