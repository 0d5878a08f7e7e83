//! An arrival releases earlier writes, and a wait acquires them, only within a scope. The default
//! scope of `mbarrier.arrive` and `mbarrier.try_wait` is the CTA. An arrival at the mbarrier of a
//! peer CTA with that scope completes the phase, but the data that was stored to the peer may not
//! be visible there yet. The waiter then reads old bytes in some runs. TMA copies need no wider
//! scope, because their bytes complete on the mbarrier itself.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    k.cluster(2, 1, 1);
    let out = k.pointer::<u32>("out");
    let inbox = k.tile::<u32>("inbox", 1, 32).unswizzled().declare().whole();
    let ready = k.barrier("ready", 1).arrivals(1).at(0u32);
    k.role("all").body(|| {
        let peer = cluster_rank() ^ 1;
        inbox.peer(peer).store(0u32, lane_id(), cta_id());
        warp_sync();
        elect(|| ready.peer(peer).arrive()); // releases the store to its own CTA only
        ready.wait_cluster(0u32);
        out.store(cta_id() * 32 + lane_id(), inbox.load(0u32, lane_id()));
    });
}

pub(super) fn repaired(k: Builder) {
    k.cluster(2, 1, 1);
    let out = k.pointer::<u32>("out");
    let inbox = k.tile::<u32>("inbox", 1, 32).unswizzled().declare().whole();
    let ready = k.barrier("ready", 1).arrivals(1).at(0u32);
    k.role("all").body(|| {
        let peer = cluster_rank() ^ 1;
        inbox.peer(peer).store(0u32, lane_id(), cta_id());
        warp_sync();
        elect(|| ready.peer(peer).arrive_cluster());
        ready.wait_cluster(0u32);
        out.store(cta_id() * 32 + lane_id(), inbox.load(0u32, lane_id()));
    });
}
