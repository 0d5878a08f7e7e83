//! An arrival does not name a phase: it counts in the phase that is current when it executes. A
//! thread that arrives again without waiting may arrive twice in one phase, if another thread is
//! late. The phase then completes without the late thread, and its waiters read data that is not
//! written yet. A wait for the previous phase fixes the phase of the next arrival.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let n = k.param::<u32>("n");
    let ready = k.barrier("ready", 1).arrivals(2).at(0u32);
    k.role("fill").body(|| {
        elect(|| {
            steps(n).each(|_| {
                ready.arrive(); // may arrive twice before the other role arrives once
            });
        });
    });
    k.role("drain").body(|| {
        elect(|| {
            steps(n).each(|i| {
                ready.arrive();
                ready.wait(i % 2);
            });
        });
    });
}

pub(super) fn repaired(k: Builder) {
    let n = k.param::<u32>("n");
    let ready = k.barrier("ready", 1).arrivals(2).at(0u32);
    k.role("fill").body(|| {
        elect(|| {
            steps(n).each(|i| {
                ready.arrive();
                ready.wait(i % 2);
            });
        });
    });
    k.role("drain").body(|| {
        elect(|| {
            steps(n).each(|i| {
                ready.arrive();
                ready.wait(i % 2);
            });
        });
    });
}
