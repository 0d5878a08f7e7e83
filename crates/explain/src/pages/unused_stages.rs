//! Shared memory of a stage that no run fills is wasted; it could hold larger tiles or a second CTA
//! on the SM. The lint compares the stages of a ring with the stages that a run fills. It warns if
//! some stage stays empty while others are filled again, and is skipped if the run is too short to
//! tell.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let (n, y) = (k.param::<u32>("n"), k.pointer::<f32>("y"));
    let tile = k.tile::<f32>("tile", 1, 128).unswizzled();
    let tile = tile.stages(4).declare();
    k.role("all").body(|| {
        steps(n).each(|i| {
            let stage = tile.stage(i % 2); // stages 2 and 3 stay empty
            stage.store_vec(0u32, lane_id() * 4, [1.0f32, 2.0, 3.0, 4.0]);
            let values = stage.load_vec::<4>(0u32, lane_id() * 4);
            y.store_vec((cta_id() * n + i) * 128 + lane_id() * 4, values);
        });
    });
}

pub(super) fn repaired(k: Builder) {
    let (n, y) = (k.param::<u32>("n"), k.pointer::<f32>("y"));
    let tile = k.tile::<f32>("tile", 1, 128).unswizzled();
    let tile = tile.stages(2).declare();
    k.role("all").body(|| {
        steps(n).each(|i| {
            let stage = tile.stage(i % 2);
            stage.store_vec(0u32, lane_id() * 4, [1.0f32, 2.0, 3.0, 4.0]);
            let values = stage.load_vec::<4>(0u32, lane_id() * 4);
            y.store_vec((cta_id() * n + i) * 128 + lane_id() * 4, values);
        });
    });
}
