//! Stream-K: all k-tiles are split evenly across CTAs; CTAs that share a tile add their accumulators
//! through global memory.

use super::prelude::*;

/// Declares the roles.
pub(super) fn roles<A: Element, B: Element, T: Out>(k: Builder, gemm: &GemmContext<T>) {
    let (c, e) = (&gemm.config, &gemm.epilogue);
    let ab = gemm.mainloop.ring::<A, B>(k).broadcast();
    let stream = gemm.tiles.tiles().stream_k(gemm.k_tiles);
    // K == 0: the share of a tile is one k-tile, but none exists.
    let k_range = |share: StreamKShare| range(share.from, share.to.min(gemm.k_tiles));
    let producer = |load: &dyn Fn(_, _)| {
        stream.each(|share| {
            let offset = gemm.offset(share.tile.into());
            k_range(share).each(|i| load(offset, i));
        });
    };
    let consumers = || {
        for (i, name) in (0..c.consumers()).zip(CONSUMERS) {
            let [rows, cols] = gemm.region(i).shape();
            let partials = k.partial_tiles(&partials_name(name), rows, cols);
            let outbox = e.outbox(k, name);
            let (role, region) = consumer(k, gemm, i);
            role.body(|| {
                let state = e.begin(i);
                stream.each(|share| {
                    let acc = gemm.accumulate(ab, k_range(share), &region);
                    let finish = || {
                        let acc = share
                            .contributors()
                            .fold(acc.clone(), |cta, acc| partials.wait_and_add(cta, acc));
                        let offset = gemm.offset(share.tile.into()).plus(region.first_row, 0);
                        e.store(&acc, outbox, offset, &state, e.prefetch(offset));
                    };
                    if_else(share.finishes_tile(), finish, || {
                        partials.store(share.partial_index(), &acc)
                    });
                });
                e.end(&state);
            });
        }
    };
    declare_roles(c, || producer_over::role(k, gemm, ab, producer), consumers);
}
