//! A thread accesses a tile at a row and a column, and the builder turns them into a byte offset. A
//! constant offset beyond the last byte of a stage is wrong in every run: the access hits the next
//! stage, another tile or an mbarrier. R12.bounds checks computed offsets.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let y = k.pointer::<f32>("y");
    let tile = k.tile::<f32>("tile", 1, 32).unswizzled();
    let tile = tile.declare().whole();
    k.role("all").body(|| {
        elect(|| {
            tile.store(0u32, 32u32, 1.0); // the columns are 0 to 31
            y.store(cta_id(), tile.load(0u32, 32u32));
        });
    });
}

pub(super) fn repaired(k: Builder) {
    let y = k.pointer::<f32>("y");
    let tile = k.tile::<f32>("tile", 1, 32).unswizzled();
    let tile = tile.declare().whole();
    k.role("all").body(|| {
        elect(|| {
            tile.store(0u32, 31u32, 1.0);
            y.store(cta_id(), tile.load(0u32, 31u32));
        });
    });
}
