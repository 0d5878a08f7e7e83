//! The CTAs of a cluster run on one GPC at the same time. Every GPU with clusters supports 8 CTAs; larger
//! clusters need an opt-in and do not fit on every GPC. The driver rejects a launch with a larger
//! cluster.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let out = k.pointer::<u32>("out");
    k.cluster(4, 4, 1); // 16 CTAs
    k.role("all").body(|| out.store(cta_id() * 32 + lane_id(), cluster_rank()));
}

pub(super) fn repaired(k: Builder) {
    let out = k.pointer::<u32>("out");
    k.cluster(4, 2, 1);
    k.role("all").body(|| out.store(cta_id() * 32 + lane_id(), cluster_rank()));
}
