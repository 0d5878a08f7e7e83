//! Split-K: each of two CTAs of a cluster computes half of K, and the first adds both accumulators.

use super::prelude::*;

/// Declares the roles.
pub(super) fn roles<A: Element, B: Element, T: Out>(k: Builder, gemm: &GemmContext<T>) {
    let (c, e, rank) = (&gemm.config, &gemm.epilogue, cluster_rank());
    let ab = gemm.mainloop.ring::<A, B>(k).broadcast();
    // The second half may reach past K: TMA fills the out-of-bounds part with zeros.
    let half = gemm.k_tiles.div_ceil(c.schedule.split_k());
    let producer = |load: &dyn Fn(_, _)| {
        gemm.tiles.each_of_cluster(|tile| {
            let offset = gemm.offset(tile);
            steps(half).each(|i| load(offset, rank * half + i));
        });
    };
    let consumers = || {
        for (i, name) in (0..c.consumers()).zip(CONSUMERS) {
            let exchange = exchange_ring(k, name, gemm.region(i).shape());
            let outbox = e.outbox(k, name);
            let (role, region) = consumer(k, gemm, i);
            role.body(|| {
                let state = e.begin(i);
                gemm.tiles.each_of_cluster(|tile| {
                    let acc = gemm.accumulate(ab, steps(half), &region);
                    let finish = || {
                        let slot = exchange.wait();
                        let other = acc.load_thread_major(&slot.tiles());
                        let acc = acc.clone().zip(&other, |x, y| x + y);
                        let offset = gemm.offset(tile).plus(region.first_row, 0);
                        e.store(&acc, outbox, offset, &state, e.prefetch(offset));
                        slot.release_remote(1u32);
                    };
                    if_else(rank.eq(0u32), finish, || {
                        let slot = exchange.acquire_remote(0u32);
                        acc.store_async_thread_major(&slot);
                        slot.commit();
                    });
                });
                e.end(&state);
            });
        }
    };
    declare_roles(c, || producer_over::role(k, gemm, ab, producer), consumers);
}
