//! `ld.global.nc` reads through the non-coherent cache, which other writes of the launch do not
//! update. The compiler may also move such a load across stores. It is correct only for memory that
//! no thread writes while the kernel runs. Otherwise the load may return an old or a new value.

use warpline_ir::builder::*;
use warpline_ir::ops::memory::LoadCache;

pub(super) fn broken(k: Builder) {
    let x = k.pointer::<f32>("x");
    k.role("all").body(|| {
        let i = cta_id() * 32 + lane_id();
        let [value] = x.load_cached::<f32, 1>(i, LoadCache::READ_ONLY);
        x.store(i, value + 1.0); // `x` is not read-only
    });
}

pub(super) fn repaired(k: Builder) {
    let x = k.pointer::<f32>("x");
    k.role("all").body(|| {
        let i = cta_id() * 32 + lane_id();
        let value = x.load(i);
        x.store(i, value + 1.0);
    });
}
