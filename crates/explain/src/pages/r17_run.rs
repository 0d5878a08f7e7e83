//! The checker cannot decide the kernel, because synchronization depends on a value that it cannot
//! compute. It runs the kernel on the CPU executor with several launches, and one of the runs
//! fails. The report contains the launch, so that the failure can be repeated. Here memory decides
//! the parity of a wait. With the wrong parity the wait passes too early or hangs.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let parities = k.pointer::<u32>("parities");
    let done = k.barrier("done", 1).arrivals(1).at(0u32);
    k.role("load").body(|| elect(|| done.arrive()));
    k.role("math").body(|| {
        let parity = parities.load(lane_id()); // memory decides the phase
        done.wait(parity & 1);
    });
}

pub(super) fn repaired(k: Builder) {
    let done = k.barrier("done", 1).arrivals(1).at(0u32);
    k.role("load").body(|| elect(|| done.arrive()));
    k.role("math").body(|| {
        done.wait(0u32); // the first phase
    });
}
