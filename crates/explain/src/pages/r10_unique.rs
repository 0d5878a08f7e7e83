//! A named barrier is only a number. Two barriers with the same number are one hardware barrier:
//! threads that arrive at one complete the other. Their waiters continue too early, or wait
//! forever. The builder gives each named barrier its own number, so only a kernel that is edited
//! after the build has a collision.

use warpline_ir::Kernel;
use warpline_ir::builder::*;

pub(super) fn broken(kernel: &mut Kernel) {
    kernel.named[1].id = kernel.named[0].id; // `left` and `right` become one barrier
}

pub(super) fn repaired(k: Builder) {
    let (left, right) = (k.named_barrier("left"), k.named_barrier("right"));
    for (name, barrier) in [("a", left), ("b", right)] {
        k.role(name).warps(2).body(|| barrier.sync(64));
    }
}
