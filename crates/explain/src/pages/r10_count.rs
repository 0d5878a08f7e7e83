//! A named barrier completes when its count of threads has arrived. With fewer arriving warps it
//! never completes, and its waiters hang. With more, the extra warps start the next use of the
//! barrier, and that use completes too early or never. A typical cause is a count that includes
//! only the waiting role.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let ready = k.named_barrier("ready");
    k.role("write").warps(1).body(|| ready.arrive(128)); // 32 + 64 threads arrive
    k.role("read").warps(2).body(|| ready.sync(128));
    k.role("load").warps(1).body(|| {});
}

pub(super) fn repaired(k: Builder) {
    let ready = k.named_barrier("ready");
    k.role("write").warps(1).body(|| ready.arrive(96));
    k.role("read").warps(2).body(|| ready.sync(96));
    k.role("load").warps(1).body(|| {});
}
