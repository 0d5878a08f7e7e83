//! A counting loop adds its step until the counter reaches the end. With a step of 0 it never does.
//! A constant step is never 0, but a step that a launch passes may be, for example the number of
//! splits of a problem that is empty. The kernel then hangs.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let (n, y) = (k.param::<u32>("n"), k.pointer::<u32>("y"));
    let step = k.param::<u32>("step");
    k.role("all").body(|| {
        let rows = range(cta_id(), n).step_by(step); // a launch may pass 0
        rows.each(|i| y.store(i * 32 + lane_id(), 1u32));
    });
}

pub(super) fn repaired(k: Builder) {
    let (n, y) = (k.param::<u32>("n"), k.pointer::<u32>("y"));
    let step = k.param::<u32>("step").at_least(1); // the runtime rejects a launch with 0
    k.role("all").body(|| {
        let rows = range(cta_id(), n).step_by(step);
        rows.each(|i| y.store(i * 32 + lane_id(), 1u32));
    });
}
