//! The checker proves a kernel by a search over the states of its barriers. It keeps a counter only
//! modulo the number of stages, so the states of a pipeline repeat after a few iterations, and the
//! search ends, also for a trip count that a launch passes. The search visits every iteration of a
//! large constant trip count, and of a counter that decides the synchronization and keeps growing.
//! It stops at a limit. The kernel may be correct: the checker neither proves nor refutes it.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let y = k.pointer::<u32>("y");
    k.role("all").body(|| {
        steps(200_000u32).each(|i| {
            // the checker walks every iteration
            elect(|| y.store(cta_id(), i));
            warp_sync();
        });
    });
}

pub(super) fn repaired(k: Builder) {
    let (n, y) = (k.param::<u32>("n"), k.pointer::<u32>("y"));
    k.role("all").body(|| {
        steps(n).each(|i| {
            // the launch passes `n`
            elect(|| y.store(cta_id(), i));
            warp_sync();
        });
    });
}
