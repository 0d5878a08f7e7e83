//! The checker follows every run of a kernel, for all launches. For this it must compute stages,
//! parities, byte counts and conditions of synchronization from launch parameters, indices and
//! values in shared memory, and it follows waits of whole warps. Here the lanes of a warp wait on
//! different mbarriers. The kernel may be correct: the checker neither proves nor refutes it.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let done = k.barrier("done", 2).arrivals(1);
    k.role("load").body(|| {
        elect(|| {
            done.at(0u32).arrive();
            done.at(1u32).arrive();
        });
    });
    k.role("math").body(|| {
        done.at(lane_id() % 2).wait(0u32); // even and odd lanes wait on different mbarriers
    });
}

pub(super) fn repaired(k: Builder) {
    let done = k.barrier("done", 2).arrivals(1);
    k.role("load").body(|| {
        elect(|| {
            done.at(0u32).arrive();
            done.at(1u32).arrive();
        });
    });
    k.role("math").body(|| {
        done.at(0u32).wait(0u32); // the whole warp waits on one mbarrier after the other
        done.at(1u32).wait(0u32);
    });
}
