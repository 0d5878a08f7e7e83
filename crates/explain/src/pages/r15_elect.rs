//! `elect.sync` picks one of the lanes in its mask, and all of them must reach it. In a branch that
//! only some lanes take, the behavior is undefined. If no active lane is elected, no lane runs the
//! body: the TMA load is not issued, and a consumer waits forever.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let y = k.pointer::<u32>("y");
    k.role("all").body(|| {
        if_(lane_id().gt(0u32), || {
            elect(|| y.store(cta_id(), 1u32)); // lane 0 does not reach this `elect`
        });
    });
}

pub(super) fn repaired(k: Builder) {
    let y = k.pointer::<u32>("y");
    k.role("all").body(|| {
        elect(|| y.store(cta_id(), 1u32));
    });
}
