//! A wait names only the parity of a phase, its lowest bit. It returns when the phase of that
//! parity is complete, so it cannot tell a phase from the one two phases away. At the start no
//! phase is complete, and the phase before the first has parity 1: the first wait of a producer for
//! an empty slot must use parity 1 to pass. A wrong parity hangs the kernel, or lets a role run
//! ahead and overwrite data that is still read.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let (n, y) = (k.param::<u32>("n"), k.pointer::<f32>("y"));
    let slot = k.tile::<f32>("slot", 1, 32).unswizzled().declare().whole();
    let [full, empty] = ["full", "empty"].map(|b| k.barrier(b, 1).arrivals(32).at(0u32));
    k.role("fill").body(|| {
        steps(n).each(|i| {
            empty.wait(i % 2); // waits for a release, but the slot starts empty
            slot.store(0u32, lane_id(), 1.0f32);
            full.arrive();
        });
    });
    k.role("store").body(|| {
        steps(n).each(|i| {
            full.wait(i % 2);
            y.store(i * 32 + lane_id(), slot.load(0u32, lane_id()));
            empty.arrive();
        });
    });
}

pub(super) fn repaired(k: Builder) {
    let (n, y) = (k.param::<u32>("n"), k.pointer::<f32>("y"));
    let slot = k.tile::<f32>("slot", 1, 32).unswizzled().declare().whole();
    let [full, empty] = ["full", "empty"].map(|b| k.barrier(b, 1).arrivals(32).at(0u32));
    k.role("fill").body(|| {
        steps(n).each(|i| {
            empty.wait((i + 1) % 2);
            slot.store(0u32, lane_id(), 1.0f32);
            full.arrive();
        });
    });
    k.role("store").body(|| {
        steps(n).each(|i| {
            full.wait(i % 2);
            y.store(i * 32 + lane_id(), slot.load(0u32, lane_id()));
            empty.arrive();
        });
    });
}
