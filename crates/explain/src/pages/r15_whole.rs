//! A barrier counts warps, not lanes. If some lanes of a warp have exited or are in another branch
//! when the rest reaches the barrier, the barrier counts the warp once although not all of its
//! lanes have arrived, and threads on the other side read values that are not written yet.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let (n, y) = (k.param::<u32>("n"), k.pointer::<u32>("y"));
    k.role("all").warps(2).body(|| {
        if_(thread_id().ge(n), exit); // a warp loses some of its lanes
        y.store(thread_id(), 1u32);
        cta_sync();
    });
}

pub(super) fn repaired(k: Builder) {
    let (n, y) = (k.param::<u32>("n"), k.pointer::<u32>("y"));
    k.role("all").warps(2).body(|| {
        if_(thread_id().lt(n), || y.store(thread_id(), 1u32));
        cta_sync();
    });
}
