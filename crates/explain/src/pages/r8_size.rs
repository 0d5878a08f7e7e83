//! The CTAs of a cluster run on one GPC at the same time. Every GPU with clusters supports 8 CTAs,
//! and sm_90a supports 16 with an opt-in at launch. The driver rejects a launch with a larger
//! cluster, or with an axis of size 0.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let out = k.pointer::<u32>("out");
    k.cluster(8, 4, 1); // 32 CTAs
    k.role("all")
        .body(|| out.store(cta_id() * 32 + lane_id(), cluster_rank()));
}

pub(super) fn repaired(k: Builder) {
    let out = k.pointer::<u32>("out");
    k.cluster(4, 2, 1);
    k.role("all")
        .body(|| out.store(cta_id() * 32 + lane_id(), cluster_rank()));
}
