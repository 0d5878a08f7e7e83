//! When a CTA exits, the hardware gives its shared memory to the next CTA. A peer's access that is
//! still in flight then reads or corrupts the memory of an unrelated CTA, or faults. Each CTA must
//! stay until its peers have finished their accesses to it, usually with a cluster barrier at the
//! end. The builder adds that barrier after the roles of every kernel whose CTAs access each other,
//! so only a kernel that is edited after the build lacks it.

use warpline_ir::Kernel;
use warpline_ir::builder::*;

pub(super) fn broken(kernel: &mut Kernel) {
    kernel.epilogue.0.clear(); // removes the cluster barrier at the end
}

pub(super) fn repaired(k: Builder) {
    k.cluster(2, 1, 1);
    let out = k.pointer::<u32>("out");
    let outbox = k
        .tile::<u32>("outbox", 1, 32)
        .unswizzled()
        .declare()
        .whole();
    k.role("all").body(|| {
        outbox.store(0u32, lane_id(), cta_id());
        cluster_sync();
        let peer = cluster_rank() ^ 1;
        out.store(
            cta_id() * 32 + lane_id(),
            outbox.peer(peer).load(0u32, lane_id()),
        );
    });
    // The builder adds a cluster barrier after the role.
}
