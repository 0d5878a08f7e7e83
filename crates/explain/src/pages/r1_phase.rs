//! An arrival does not name a phase: it counts in the phase that is current when it executes. A thread
//! that arrives again without waiting may arrive twice in one phase, if another thread is late. The
//! first phase then completes without the late thread, and its waiters read data that is not written
//! yet. A wait for the previous phase fixes the phase of the arrival.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let n = k.param::<u32>("n");
    let ready = k.barrier("ready", 1).arrivals(2).at(0u32);
    for name in ["left", "right"] {
        k.role(name).body(|| {
            elect(|| {
                steps(n).each(|i| {
                    ready.arrive(); // the other role may still be in the phase before
                });
            });
        });
    }
    k.role("store").body(|| steps(n).each(|i| ready.wait(i % 2)));
}

pub(super) fn repaired(k: Builder) {
    let n = k.param::<u32>("n");
    let ready = k.barrier("ready", 1).arrivals(2).at(0u32);
    for name in ["left", "right"] {
        k.role(name).body(|| {
            elect(|| {
                steps(n).each(|i| {
                    ready.arrive();
                    ready.wait(i % 2);
                });
            });
        });
    }
}
