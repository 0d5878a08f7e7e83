//! `setmaxnreg` changes the registers of a whole warpgroup: four warps that start at a multiple of
//! four. All four must execute it. If a role covers only part of a warpgroup, the other warps of
//! that warpgroup belong to another role and execute something else, and the behavior is undefined.
//! Roles with a register budget come first; smaller roles follow them.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    k.role("load").warps(2).registers(40).body(|| {}); // half of a warpgroup
    k.role("multiply").warps(6).body(|| {});
}

pub(super) fn repaired(k: Builder) {
    k.role("multiply").warpgroups(1).registers(152).body(|| {});
    k.role("load").warps(2).body(|| {});
}
