//! `.aligned` instructions, such as a CTA barrier, `setmaxnreg`, `ldmatrix` or wgmma, run once for
//! a whole warp. If only some lanes reach the instruction, its behavior is undefined: the barrier
//! counts the warp once and lets it pass, or the kernel hangs.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let y = k.pointer::<u32>("y");
    k.role("all").warps(2).body(|| {
        if_(lane_id().lt(16u32), || {
            y.store(cta_id() * 64 + thread_id(), 1u32);
            cta_sync(); // half of the lanes do not reach this barrier
        });
    });
}

pub(super) fn repaired(k: Builder) {
    let y = k.pointer::<u32>("y");
    k.role("all").warps(2).body(|| {
        if_(lane_id().lt(16u32), || {
            y.store(cta_id() * 64 + thread_id(), 1u32)
        });
        cta_sync();
    });
}
