//! A dependent launch (programmatic dependent launch, PDL) starts a grid while the preceding grid
//! still runs. `griddepcontrol.wait` blocks until the preceding grids have ended and their writes
//! are visible. An access to global memory before it may read old values, or overwrite values that
//! the preceding grid still reads. Each role waits by itself, because a wait in one warp does not
//! stop the other warps.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let (x, y) = (k.pointer::<u32>("x"), k.pointer::<u32>("y"));
    k.role("all").body(|| {
        let i = cta_id() * 32 + lane_id();
        let value = x.load(i); // the preceding grid may not have written `x` yet
        wait_prerequisites();
        y.store(i, value);
    });
}

pub(super) fn repaired(k: Builder) {
    let (x, y) = (k.pointer::<u32>("x"), k.pointer::<u32>("y"));
    k.role("all").body(|| {
        let i = cta_id() * 32 + lane_id();
        wait_prerequisites();
        let value = x.load(i);
        y.store(i, value);
    });
}
