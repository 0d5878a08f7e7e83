//! `pdl_safe()` declares that no preceding grid writes the memory of a parameter, for example the
//! weights of a model. A dependent launch may then read it before `wait_prerequisites()`. Only the
//! plan knows the steps that run before this one, so the runtime compares the declaration with the
//! buffers that those steps write. If one of them writes the buffer, the early read returns old
//! values in some runs.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let x = k.pointer::<u32>("x").pdl_safe(); // but the preceding step of the plan writes `x`
    let y = k.pointer::<u32>("y");
    k.role("all").body(|| {
        let i = cta_id() * 32 + lane_id();
        let value = x.load(i);
        wait_prerequisites();
        y.store(i, value);
    });
}

pub(super) fn repaired(k: Builder) {
    let x = k.pointer::<u32>("x");
    let y = k.pointer::<u32>("y");
    k.role("all").body(|| {
        let i = cta_id() * 32 + lane_id();
        wait_prerequisites();
        let value = x.load(i);
        y.store(i, value);
    });
}
