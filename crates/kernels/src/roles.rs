//! Roles that kernels of several families have.

use warpline_ir::build::*;

/// A role of one thread that works: one warp, or a warpgroup where registers are moved.
pub(crate) fn helper(k: Builder, name: &str, registers: Option<u32>) -> RoleDecl {
    let role = k.role(name);
    match registers {
        None => role.warps(1),
        some => role.warpgroups(1).registers_opt(some),
    }
}
