//! Reports, traces and profiles name a warp by its role, and a turn orders roles by their names.
//! Two roles with one name cannot be told apart. The builder rejects the second one, so the checker
//! finds this only in a kernel that is edited after the build.

use warpline_ir::Kernel;
use warpline_ir::builder::*;

pub(super) fn broken(kernel: &mut Kernel) {
    kernel.roles[1].name = "load".to_owned(); // role 0 is `load` as well
}

pub(super) fn repaired(k: Builder) {
    k.role("load").body(|| {});
    k.role("math").warpgroups(1).body(|| {});
}
