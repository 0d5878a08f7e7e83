//! Global memory is transferred in sectors of 32 bytes. A request of a warp for 32 neighboring
//! floats touches 4 sectors. Lanes that access scattered words touch one sector each, so most of
//! the transferred bytes are wasted, and bandwidth drops by that factor.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let (x, y) = (k.pointer::<f32>("x"), k.pointer::<f32>("y"));
    k.role("all").body(|| {
        let i = cta_id() * 32 + lane_id();
        y.store(i, x.load(i * 8)); // 32 sectors for 128 bytes
    });
}

pub(super) fn repaired(k: Builder) {
    let (x, y) = (k.pointer::<f32>("x"), k.pointer::<f32>("y"));
    k.role("all").body(|| {
        let i = cta_id() * 32 + lane_id();
        y.store(i, x.load(i)); // 4 sectors
    });
}
