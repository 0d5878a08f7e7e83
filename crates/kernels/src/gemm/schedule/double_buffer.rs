//! Double buffer: every warpgroup loads its part of the next k-tile, then multiplies the current one.

use super::prelude::*;

/// Declares the roles.
pub(super) fn roles<A: Element, B: Element, T: Out>(k: Builder, gemm: &GemmContext<T>) {
    let (of, e, mainloop) = (gemm.config.consumers(), &gemm.epilogue, &gemm.mainloop);
    let ring = mainloop.ring::<A, B>(k);
    let ab = ring.cooperative_producers().broadcast();
    for i in 0..of {
        let outbox = e.outbox(k, CONSUMERS[i as usize]);
        let (role, area) = consumer(k, gemm, i);
        role.body(|| {
            let state = e.begin(i);
            elect(|| e.prefetch_map());
            gemm.tiles.each(|tile| {
                let at = gemm.offset(tile);
                let bias = e.prefetch(at.plus(area.first_row, 0));
                let [rows, cols] = area.shape();
                let acc = Acc::new(rows, cols);
                let multiply = || {
                    let slot = ab.wait();
                    mainloop.mma(&acc, *slot, &area);
                    acc.wait();
                    slot.release();
                };
                let loaded = Var::new(false);
                steps(gemm.k_tiles).each(|k_tile| {
                    elect(|| {
                        let slot = ab.acquire();
                        mainloop.load(&slot, at, k_tile, LoadPart { index: i, of });
                        slot.commit();
                    });
                    if_(loaded.get(), multiply);
                    loaded.set(true);
                });
                if_(loaded.get(), multiply);
                let at = at.plus(area.first_row, 0);
                e.store(&acc.into_frag(), outbox, at, &state, bias);
            });
            e.end(&state);
        });
    }
}
