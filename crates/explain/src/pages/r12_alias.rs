//! An aliased tile reuses bytes of another tile, for example an epilogue tile on the bytes of an
//! operand. The reuse is correct only if every access to the first tile is ordered before every
//! access to the second one. Without a barrier in between, a warp that runs ahead overwrites values
//! that another warp has not read yet. The output is then wrong in some runs.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let (x, y) = (k.pointer::<f32>("x"), k.pointer::<f32>("y"));
    let q = k.tile::<f32>("q", 1, 64).unswizzled().declare();
    let o = k.tile::<f32>("o", 1, 64).unswizzled().alias(q).declare();
    let (q, o) = (q.whole(), o.whole());
    k.role("all").warps(2).body(|| {
        let t = thread_in_role();
        q.store(0u32, t, x.load(t));
        cta_sync();
        let sum = q.load(0u32, t) + q.load(0u32, t ^ 32);
        o.store(0u32, t, sum); // the other warp may not have read `q` yet
        y.store(cta_id() * 64 + t, o.load(0u32, t));
    });
}

pub(super) fn repaired(k: Builder) {
    let (x, y) = (k.pointer::<f32>("x"), k.pointer::<f32>("y"));
    let q = k.tile::<f32>("q", 1, 64).unswizzled().declare();
    let o = k.tile::<f32>("o", 1, 64).unswizzled().alias(q).declare();
    let (q, o) = (q.whole(), o.whole());
    k.role("all").warps(2).body(|| {
        let t = thread_in_role();
        q.store(0u32, t, x.load(t));
        cta_sync();
        let sum = q.load(0u32, t) + q.load(0u32, t ^ 32);
        cta_sync(); // both warps have read `q`
        o.store(0u32, t, sum);
        y.store(cta_id() * 64 + t, o.load(0u32, t));
    });
}
