//! A loop with a step other than 1 ends only if its counter reaches the bound before it wraps
//! around. The step itself may be a product that wraps around to 0. If the bounds of the parameters
//! exclude neither, the proof assumes that no wrap-around occurs.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let (n, y) = (k.param::<u32>("n"), k.pointer::<u32>("y"));
    let [rows, split] = ["rows", "split"].map(|name| k.param::<u32>(name).at_least(1));
    k.role("all").body(|| {
        let all = range(cta_id(), n).step_by(rows * split); // may wrap around to 0
        all.each(|i| y.store(i * 32 + lane_id(), 1u32));
    });
}

pub(super) fn repaired(k: Builder) {
    let (n, y) = (k.param::<u32>("n"), k.pointer::<u32>("y"));
    let [rows, split] =
        ["rows", "split"].map(|name| k.param::<u32>(name).at_least(1).at_most(1024));
    k.role("all").body(|| {
        let all = range(cta_id(), n).step_by(rows * split); // at most 2^20
        all.each(|i| y.store(i * 32 + lane_id(), 1u32));
    });
}
