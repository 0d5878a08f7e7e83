//! The lanes of a warp share one instruction. In a branch that only some lanes take, the others are
//! idle, and if the lanes take both arms, the warp runs them one after the other. A role that
//! spends its time in a branch with few active lanes wastes most of the warp.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let (x, y) = (k.pointer::<f32>("x"), k.pointer::<f32>("y"));
    k.role("all").body(|| {
        if_(lane_id().lt(4u32), || {
            // 28 lanes are idle
            steps(8u32).each(|step| {
                let i = cta_id() * 32 + step * 4 + lane_id();
                y.store(i, x.load(i) * 2.0);
            });
        });
    });
}

pub(super) fn repaired(k: Builder) {
    let (x, y) = (k.pointer::<f32>("x"), k.pointer::<f32>("y"));
    k.role("all").body(|| {
        let i = cta_id() * 32 + lane_id(); // every lane has one element
        y.store(i, x.load(i) * 2.0);
    });
}
