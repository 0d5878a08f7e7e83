//! A cluster has one hardware barrier, and it counts all threads of all its CTAs. If one CTA skips the
//! barrier, the others wait forever. A thread that arrives twice without a wait, or waits without an
//! arrival, has undefined behavior in PTX.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    k.cluster(2, 1, 1);
    let out = k.pointer::<u32>("out");
    k.role("all").body(|| {
        out.store(cta_id() * 32 + lane_id(), 1u32);
        if_(cluster_rank().eq(0u32), cluster_sync); // CTA 1 does not arrive
    });
}

pub(super) fn repaired(k: Builder) {
    k.cluster(2, 1, 1);
    let out = k.pointer::<u32>("out");
    k.role("all").body(|| {
        out.store(cta_id() * 32 + lane_id(), 1u32);
        cluster_sync();
    });
}
