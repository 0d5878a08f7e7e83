//! Thread counts and tile extents that are powers of two turn divisions and remainders of indices
//! into shifts and masks, and they fill swizzle spans, boxes and matrix shapes completely. Other
//! sizes are correct, and sometimes the problem requires them. The lint looks at each role and each
//! tile, not at the sum of all threads.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let (x, y) = (k.pointer::<f32>("x"), k.pointer::<f32>("y"));
    k.role("all").warps(3).body(|| {
        // 96 threads
        let i = cta_id() * 96 + thread_in_role();
        y.store(i, x.load(i) * 2.0);
    });
}

pub(super) fn repaired(k: Builder) {
    let (x, y) = (k.pointer::<f32>("x"), k.pointer::<f32>("y"));
    k.role("all").warps(4).body(|| {
        // 128 threads
        let i = cta_id() * 128 + thread_in_role();
        y.store(i, x.load(i) * 2.0);
    });
}
