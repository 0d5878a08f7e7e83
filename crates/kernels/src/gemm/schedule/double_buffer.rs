//! Double buffer: every warpgroup loads its part of the next k-tile, then multiplies this one.

use super::prelude::*;

/// Declares the roles.
pub(super) fn roles<A: Element, B: Element, T: Out>(k: Builder, gemm: &GemmContext<T>) {
    let of = gemm.config.consumers();
    let ab = gemm.mainloop.ring::<A, B>(k).joint().shared();
    for i in 0..of {
        let outbox = gemm.epilogue.outbox(k, CONSUMERS[i as usize]);
        let (role, area) = consumer(k, gemm, i);
        role.body(|| {
            let run = gemm.epilogue.begin(i);
            elect(|| gemm.epilogue.prefetch_map());
            gemm.tiles.each(|tile| {
                let at = gemm.offset(tile);
                let bias = gemm.epilogue.prefetch(at.plus(area.first, 0));
                let [rows, cols] = area.sides();
                let acc = Acc::new(rows, cols);
                let multiply = || {
                    let slot = ab.wait();
                    gemm.mainloop.mma(&acc, *slot, &area);
                    acc.wait();
                    slot.release();
                };
                let loaded = Var::new(false);
                steps(gemm.k_tiles).each(|k_tile| {
                    elect(|| {
                        let slot = ab.acquire();
                        gemm.mainloop.load(&slot, at, k_tile, Part { index: i, of });
                        slot.commit();
                    });
                    if_(loaded.get(), multiply);
                    loaded.set(true);
                });
                if_(loaded.get(), multiply);
                let at = at.plus(area.first, 0);
                gemm.epilogue.store(&acc.finish(), outbox, at, &run, bias);
            });
            gemm.epilogue.end(&run);
        });
    }
}
