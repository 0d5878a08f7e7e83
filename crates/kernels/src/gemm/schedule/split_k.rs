//! Split-K: two CTAs of a cluster compute half of K each and combine them through shared memory.

use super::prelude::*;

/// Declares the roles.
pub(super) fn roles<A: Element, B: Element, T: Out>(k: Builder, gemm: &GemmContext<T>) {
    let (c, e, rank) = (&gemm.config, &gemm.epilogue, cluster_rank());
    let ab = gemm.mainloop.ring::<A, B>(k).broadcast();
    // The second half may reach past K: TMA fills the out-of-bounds part with zeros.
    let half = gemm.k_tiles.div_ceil(c.schedule.split_k());
    let producer = |load: &dyn Fn(_, _)| {
        gemm.tiles.each_of_cluster(|tile| {
            let at = gemm.offset(tile);
            steps(half).each(|i| load(at, rank * half + i));
        });
    };
    let consumers = || {
        for (i, name) in (0..c.consumers()).zip(CONSUMERS) {
            let ring = exchange_ring(k, name, gemm.area(i).shape());
            let outbox = e.outbox(k, name);
            let (role, area) = consumer(k, gemm, i);
            role.body(|| {
                let state = e.begin(i);
                gemm.tiles.each_of_cluster(|tile| {
                    let acc = gemm.accumulate(ab, steps(half), &area);
                    let finish = || {
                        let slot = ring.wait();
                        let more = acc.load_thread_major(&slot.tiles());
                        let acc = acc.clone().zip(&more, |x, y| x + y);
                        let at = gemm.offset(tile).plus(area.first_row, 0);
                        e.store(&acc, outbox, at, &state, e.prefetch(at));
                        slot.release_remote(1u32);
                    };
                    if_else(rank.eq(0u32), finish, || {
                        let slot = ring.acquire_remote(0u32);
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
