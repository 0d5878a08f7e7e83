//! A stage index selects one buffer of a ring, and it must wrap around at the number of stages. The
//! hardware does not check it: an access with a larger index reads or overwrites the tile that
//! follows. The result is wrong, or a later wait hangs because an mbarrier was overwritten.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let (n, y) = (k.param::<u32>("n"), k.pointer::<f32>("y"));
    let tile = k.tile::<f32>("tile", 1, 32).unswizzled();
    let tile = tile.stages(2).declare();
    k.role("all").body(|| {
        steps(n).each(|i| {
            tile.stage(i).store(0u32, lane_id(), 1.0); // only stages 0 and 1 exist
            y.store(
                (cta_id() * n + i) * 32 + lane_id(),
                tile.stage(i).load(0u32, lane_id()),
            );
        });
    });
}

pub(super) fn repaired(k: Builder) {
    let (n, y) = (k.param::<u32>("n"), k.pointer::<f32>("y"));
    let tile = k.tile::<f32>("tile", 1, 32).unswizzled();
    let tile = tile.stages(2).declare();
    k.role("all").body(|| {
        steps(n).each(|i| {
            let stage = tile.stage(i % 2u32);
            stage.store(0u32, lane_id(), 1.0);
            y.store(
                (cta_id() * n + i) * 32 + lane_id(),
                stage.load(0u32, lane_id()),
            );
        });
    });
}
