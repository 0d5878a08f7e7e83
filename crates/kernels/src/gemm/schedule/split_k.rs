//! Split-K: each CTA of a cluster computes a part of K, and the first CTA adds all accumulators.

use super::prelude::*;

/// Declares the roles.
pub(super) fn roles<A: Element, B: Element, T: Out>(k: Builder, gemm: &GemmContext<T>) {
    let (c, e, rank) = (&gemm.config, &gemm.epilogue, cluster_rank());
    let ab = gemm.mainloop.ring::<A, B>(k).broadcast();
    let parts = c.schedule.split_k();
    // The last parts may extend past K; TMA fills out-of-bounds elements with zeros.
    let part = gemm.k_tiles.div_ceil(parts);
    let producer = |load: &dyn Fn(_, _)| {
        gemm.tiles.each_of_cluster(|tile| {
            let offset = gemm.offset(tile);
            steps(part).each(|i| load(offset, rank * part + i));
        });
    };
    let consumers = || {
        for (i, name) in (0..c.consumers()).zip(CONSUMERS) {
            let rings: Vec<_> = exchange_rings(k, name, parts, gemm.region(i).shape()).collect();
            let outbox = e.outbox(k, name);
            let (role, region) = consumer(k, gemm, i);
            role.body(|| {
                let state = e.begin(i);
                gemm.tiles.each_of_cluster(|tile| {
                    let acc = gemm.accumulate(ab, steps(part), &region);
                    let finish = || {
                        let acc = rings.iter().fold(acc.clone(), |acc, &(peer, ring)| {
                            let slot = ring.wait();
                            let other = acc.load_thread_major(&slot.tiles());
                            slot.release_remote(peer);
                            acc.zip(&other, |x, y| x + y)
                        });
                        let offset = gemm.offset(tile).plus(region.first_row, 0);
                        e.store(&acc, outbox, offset, &state, e.prefetch(offset));
                    };
                    if_else(rank.eq(0u32), finish, || send(rank, &rings, &acc));
                });
                e.end(&state);
            });
        }
    };
    declare_roles(c, || producer_over::role(k, gemm, ab, producer), consumers);
}
