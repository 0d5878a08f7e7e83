//! The checker proves that a `while` loop ends if the loop counts toward a bound. A condition that
//! reads memory or a barrier falls under other rules. For any other loop the proof assumes that the
//! loop ends. A loop with a known number of iterations needs no assumption.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let (n, y) = (k.param::<u32>("n"), k.pointer::<u32>("y"));
    k.role("all").body(|| {
        let (rest, bits) = (Var::new(n), Var::new(0u32));
        while_(
            || rest.get().gt(0u32), // ends, because halves become 0
            || {
                rest.set(rest.get() / 2);
                bits.set(bits.get() + 1);
            },
        );
        y.store(cta_id() * 32 + lane_id(), bits.get());
    });
}

pub(super) fn repaired(k: Builder) {
    let (n, y) = (k.param::<u32>("n"), k.pointer::<u32>("y"));
    k.role("all").body(|| {
        let bits = steps(32u32).fold(0u32.reg(), |i, bits| select((n >> i).gt(0u32), i + 1, bits));
        y.store(cta_id() * 32 + lane_id(), bits);
    });
}
