//! Split-K: two CTAs of a cluster take half of K each; the second hands its accumulators to the
//! first through distributed shared memory.

use super::prelude::*;

/// Declares the roles.
pub(super) fn roles<A: Element, B: Element, T: Out>(k: Builder, gemm: &GemmContext<T>) {
    let (c, e, rank) = (&gemm.config, &gemm.epilogue, cluster_rank());
    let ab = gemm.mainloop.ring::<A, B>(k).shared();
    // The second half may reach behind K, where loads give zeros.
    let half = gemm.k_tiles.div_ceil(c.schedule.split_k());
    let producer = |load: &dyn Fn(_, _)| {
        gemm.tiles.each_of_cluster(|tile| {
            let at = gemm.offset(tile);
            steps(half).each(|i| load(at, rank * half + i));
        });
    };
    let consumers = || {
        for (i, name) in (0..c.consumers()).zip(CONSUMERS) {
            let (handed, outbox) = (handed(k, name, gemm.area(i).sides()), e.outbox(k, name));
            let (role, area) = consumer(k, gemm, i);
            role.body(|| {
                let run = e.begin(i);
                gemm.tiles.each_of_cluster(|tile| {
                    let acc = gemm.accumulate(ab, steps(half), &area);
                    let finish = || {
                        let slot = handed.wait();
                        let more = acc.load_lanes(&slot.tiles());
                        let acc = acc.clone().zip(&more, |x, y| x + y);
                        let at = gemm.offset(tile).plus(area.first, 0);
                        e.store(&acc, outbox, at, &run, e.prefetch(at));
                        slot.release_to(1u32);
                    };
                    if_else(rank.eq(0u32), finish, || {
                        let slot = handed.acquire_at(0u32);
                        acc.post_lanes(&slot);
                        slot.commit();
                    });
                });
                e.end(&run);
            });
        }
    };
    in_order(c, || producer_over::role(k, gemm, ab, producer), consumers);
}
