//! An mbarrier counts down from the arrival count of its initialization, and its phase completes at
//! zero. If fewer threads arrive, the phase never completes and every waiter hangs. If more threads
//! arrive, the extra arrivals count in the next phase, which then completes too early: a consumer
//! reads old data. A typical cause is one arrival per warp where the count assumes one per thread.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let out = k.pointer::<f32>("out");
    let sums = k.tile::<f32>("sums", 2, 32).unswizzled().declare().whole();
    let done = k.barrier("done", 1).arrivals(64).at(0u32); // only 2 lanes arrive
    k.role("compute").warps(2).body(|| {
        sums.store(warp_in_role(), lane_id(), 1.0f32);
        warp_sync();
        elect_lane(|| done.arrive());
    });
    k.role("store").body(|| {
        done.wait(0u32);
        let sum = sums.load(0u32, lane_id()) + sums.load(1u32, lane_id());
        out.store(lane_id(), sum);
    });
}

pub(super) fn repaired(k: Builder) {
    let out = k.pointer::<f32>("out");
    let sums = k.tile::<f32>("sums", 2, 32).unswizzled().declare().whole();
    let done = k.barrier("done", 1).arrivals(2).at(0u32);
    k.role("compute").warps(2).body(|| {
        sums.store(warp_in_role(), lane_id(), 1.0f32);
        warp_sync();
        elect_lane(|| done.arrive());
    });
    k.role("store").body(|| {
        done.wait(0u32);
        let sum = sums.load(0u32, lane_id()) + sums.load(1u32, lane_id());
        out.store(lane_id(), sum);
    });
}
