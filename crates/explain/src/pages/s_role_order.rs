//! A warp finds its role by its warp ID, so the roles must cover the warps of the CTA without gaps
//! and without overlap. A warp in a gap would run no role. The builder numbers the warps in the
//! order of the roles, so the checker finds this only in a kernel that is edited after the build.

use warpline_ir::Kernel;
use warpline_ir::builder::*;

pub(super) fn broken(kernel: &mut Kernel) {
    kernel.roles[1].first_warp = 5; // warp 4 has no role
}

pub(super) fn repaired(k: Builder) {
    k.role("math").warpgroups(1).body(|| {}); // warps 0 to 3
    k.role("load").body(|| {}); // warp 4
}
