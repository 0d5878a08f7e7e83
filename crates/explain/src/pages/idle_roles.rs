//! A warp without work still takes registers and a warp slot of the SM, and it takes part in
//! barriers. The lint warns about warps that neither access memory nor issue asynchronous
//! operations, and about roles that do very little compared with the busiest role.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let (x, y) = (k.pointer::<f32>("x"), k.pointer::<f32>("y"));
    k.role("all").warps(4).body(|| {
        if_(warp_in_role().eq(0u32), || {
            // three warps do nothing
            let i = cta_id() * 32 + lane_id();
            y.store(i, x.load(i) * 2.0);
        });
    });
}

pub(super) fn repaired(k: Builder) {
    let (x, y) = (k.pointer::<f32>("x"), k.pointer::<f32>("y"));
    k.role("all").warps(4).body(|| {
        let i = cta_id() * 128 + thread_in_role(); // every warp has its own elements
        y.store(i, x.load(i) * 2.0);
    });
}
