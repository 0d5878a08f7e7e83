//! Each `bar.sync` and `bar.arrive` passes the thread count of the barrier, and the hardware keeps
//! one counter per barrier. Roles with different counts do not agree on when the barrier completes,
//! so a waiter hangs or continues too early. A typical cause is a role that gets more warps while
//! only one of the counts is updated.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let ready = k.named_barrier("ready");
    k.role("write").warps(4).body(|| ready.arrive(256));
    k.role("read").warps(4).body(|| ready.sync(128)); // the other side counts 256
}

pub(super) fn repaired(k: Builder) {
    let ready = k.named_barrier("ready");
    k.role("write").warps(4).body(|| ready.arrive(256));
    k.role("read").warps(4).body(|| ready.sync(256));
}
