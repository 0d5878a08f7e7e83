//! The roles of a kernel divide the warps of a CTA. A role without warps never runs, so its
//! barriers are never reached, and a CTA without roles has no threads. The builder rejects both, so
//! the checker finds this only in a kernel that is edited after the build.

use warpline_ir::Kernel;
use warpline_ir::builder::*;

pub(super) fn broken(kernel: &mut Kernel) {
    kernel.roles[1].warps = 0; // no warp runs `math`
}

pub(super) fn repaired(k: Builder) {
    k.role("load").body(|| {});
    k.role("math").warpgroups(1).body(|| {});
}
