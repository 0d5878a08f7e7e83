//! The CTAs of a cluster are scheduled together, but they do not start at the same instant. A store
//! to the shared memory of a CTA that has not started, or an arrival at an mbarrier that it has not
//! initialized, is lost or faults. The first cluster barrier proves that all CTAs have started. The
//! builder adds it to the prologue of every kernel whose CTAs access each other, so only a kernel
//! that is edited after the build lacks it.

use warpline_ir::builder::*;
use warpline_ir::{Kernel, Op, StmtKind};

pub(super) fn broken(kernel: &mut Kernel) {
    // Removes the cluster barrier before all roles.
    kernel.prologue.0.retain(|stmt| {
        let StmtKind::Op(op) = &stmt.kind else {
            return true;
        };
        !matches!(op, Op::ClusterArrive(_) | Op::ClusterWait(_))
    });
}

pub(super) fn repaired(k: Builder) {
    k.cluster(2, 1, 1);
    let out = k.pointer::<u32>("out");
    let inbox = k.tile::<u32>("inbox", 1, 32).unswizzled().declare().whole();
    k.role("all").body(|| {
        let peer = cluster_rank() ^ 1;
        inbox.peer(peer).store(0u32, lane_id(), cta_id());
        cluster_sync();
        out.store(cta_id() * 32 + lane_id(), inbox.load(0u32, lane_id()));
    });
    // The builder adds a cluster barrier before the role.
}
