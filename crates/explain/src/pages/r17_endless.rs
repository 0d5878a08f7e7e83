//! A `while` loop ends only if its condition changes. If the condition depends on values that
//! neither the loop nor another thread changes, the loop never ends once it has begun, and the
//! kernel hangs. A typical case is a loop that advances another variable than the one in its
//! condition.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let (n, y) = (k.param::<u32>("n"), k.pointer::<u32>("y"));
    k.role("all").body(|| {
        let (i, j) = (Var::new(0u32), Var::new(0u32));
        while_(
            || i.get().lt(n), // `i` stays 0
            || {
                y.store((cta_id() * n + j.get()) * 32 + lane_id(), 1u32);
                j.set(j.get() + 1);
            },
        );
    });
}

pub(super) fn repaired(k: Builder) {
    let (n, y) = (k.param::<u32>("n"), k.pointer::<u32>("y"));
    k.role("all").body(|| {
        let i = Var::new(0u32);
        while_(
            || i.get().lt(n),
            || {
                y.store((cta_id() * n + i.get()) * 32 + lane_id(), 1u32);
                i.set(i.get() + 1);
            },
        );
    });
}
