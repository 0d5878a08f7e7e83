//! A cluster has one hardware barrier, and it counts all threads of all its CTAs that have not
//! exited. If a CTA that still runs skips the barrier, the others wait forever. PTX requires that
//! each thread arrives once and then waits; a second arrival before the wait breaks the count. A
//! typical cause is a `cluster_arrive` far from its `cluster_wait`, when only one of them is moved.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    k.cluster(2, 1, 1);
    let out = k.pointer::<u32>("out");
    k.role("all").body(|| {
        cluster_arrive();
        out.store(cta_id() * 32 + lane_id(), 1u32);
        cluster_sync(); // arrives a second time before the wait
    });
}

pub(super) fn repaired(k: Builder) {
    k.cluster(2, 1, 1);
    let out = k.pointer::<u32>("out");
    k.role("all").body(|| {
        cluster_arrive();
        out.store(cta_id() * 32 + lane_id(), 1u32);
        cluster_wait();
    });
}
