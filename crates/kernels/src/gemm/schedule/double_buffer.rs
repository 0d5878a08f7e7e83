//! Double buffer: every warpgroup loads its part of the next k-tile, then multiplies the current one.

use super::prelude::*;

/// Declares the roles.
pub(super) fn roles<A: Element, B: Element, T: Out>(k: Builder, gemm: &GemmContext<T>) {
    let (count, e, mainloop) = (gemm.config.consumers(), &gemm.epilogue, &gemm.mainloop);
    let ring = mainloop.ring::<A, B>(k);
    let ab = ring.cooperative_producers().broadcast();
    for i in 0..count {
        let outbox = e.outbox(k, CONSUMERS[i as usize]);
        let (role, region) = consumer(k, gemm, i);
        role.body(|| {
            let state = e.begin(i);
            elect(|| e.prefetch_map());
            gemm.tiles.each(|tile| {
                let offset = gemm.offset(tile);
                let bias = e.prefetch(offset.plus(region.first_row, 0));
                let [rows, cols] = region.shape();
                let acc = Acc::new(rows, cols);
                let multiply = || {
                    let slot = ab.wait();
                    mainloop.mma(&acc, *slot, &region);
                    acc.wait();
                    slot.release();
                };
                let loaded = Var::new(false);
                steps(gemm.k_tiles).each(|k_tile| {
                    elect(|| {
                        let slot = ab.acquire();
                        let part = LoadPart { index: i, count };
                        mainloop.load(&slot, offset, k_tile, part, LoadBy::OneThread);
                        slot.commit();
                    });
                    if_(loaded.get(), multiply);
                    loaded.set(true);
                });
                if_(loaded.get(), multiply);
                let offset = offset.plus(region.first_row, 0);
                e.store(&acc.into_frag(), outbox, offset, &state, bias);
            });
            e.end(&state);
        });
    }
}
