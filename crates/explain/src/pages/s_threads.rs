//! A CTA has at most 1024 threads, which is 32 warps. The driver rejects a larger launch. All roles
//! count together.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    k.role("load").body(|| {});
    k.role("math").warps(32).body(|| {}); // 33 warps with `load`
}

pub(super) fn repaired(k: Builder) {
    k.role("load").body(|| {});
    k.role("math").warps(28).body(|| {}); // 29 warps with `load`
}
