//! An array of mbarriers has one 8-byte word for each stage of a ring. A constant index outside of
//! the array names bytes that are no mbarrier: an arrival there changes other data, and a wait
//! there hangs. R12.bounds checks computed indices.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let done = k.barrier("done", 2).arrivals(1);
    k.role("load").body(|| elect(|| done.at(2u32).arrive())); // the indices are 0 and 1
    k.role("math").body(|| done.at(1u32).wait(0u32));
}

pub(super) fn repaired(k: Builder) {
    let done = k.barrier("done", 2).arrivals(1);
    k.role("load").body(|| elect(|| done.at(1u32).arrive()));
    k.role("math").body(|| done.at(1u32).wait(0u32));
}
