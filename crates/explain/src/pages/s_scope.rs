//! Registers are private to a thread. A value that one role computes is not in the registers of
//! another role, because other warps run it. Values of the prologue are in the registers of all
//! roles; roles pass other values through shared memory. The builder rejects a handle of another
//! role, so the checker finds this only in a kernel that is edited after the build.

use warpline_ir::builder::*;
use warpline_ir::{Kernel, RoleId};

pub(super) fn broken(kernel: &mut Kernel) {
    for register in &mut kernel.regs {
        if register.role == Some(RoleId(0)) {
            register.role = Some(RoleId(1)); // role `double` now uses registers of role `idle`
        }
    }
}

pub(super) fn repaired(k: Builder) {
    let (x, y) = (k.pointer::<f32>("x"), k.pointer::<f32>("y"));
    k.role("double").body(|| {
        let i = cta_id() * 32 + lane_id();
        y.store(i, x.load(i) * 2.0);
    });
    k.role("idle").body(|| {});
}
