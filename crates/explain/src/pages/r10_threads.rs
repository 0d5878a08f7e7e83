//! `bar.sync id, n` counts arrivals in whole warps, so `n` must be a multiple of 32. It must not
//! exceed the threads of the CTA, or the barrier never completes. ptxas rejects some of these
//! counts; a kernel with one of the others hangs.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let group = k.named_barrier("group");
    k.role("all").warps(4).body(|| group.sync(100)); // not whole warps
}

pub(super) fn repaired(k: Builder) {
    let group = k.named_barrier("group");
    k.role("all").warps(4).body(|| group.sync(128));
}
