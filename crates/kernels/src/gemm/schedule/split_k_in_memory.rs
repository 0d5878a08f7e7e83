//! Split-K through global memory: each CTA of a group computes a part of K and stores its accumulators;
//! then each CTA adds all parts of some columns. Groups have any size, and need no cluster.

use super::prelude::*;

/// Declares the roles.
pub(super) fn roles<A: Element, B: Element, T: Out>(k: Builder, gemm: &GemmContext<T>) {
    let (c, e) = (&gemm.config, &gemm.epilogue);
    let ab = gemm.mainloop.ring::<A, B>(k).broadcast();
    let parts = k.param::<u32>("parts").at_least(1).at_most(MAX_PARTS);
    let [length, larger] = ["part_k_tiles", "larger_parts"].map(|name| k.param::<u32>(name));
    let (length, larger) = (length.at_most(MAX_PART_K_TILES), larger.at_most(MAX_PARTS));
    // Along x the grid has a group for each tile, along y its CTAs.
    let group = cta_id().min(MAX_GROUPS - 1);
    let rank = cta_id_y().min(MAX_PARTS - 1);
    let first_cta = group * parts;
    // The first parts have one more k-tile if K does not divide evenly.
    let from = rank * length + rank.min(larger);
    let part = || range(from, from + length + select(rank.lt(larger), 1u32, 0u32));
    let producer = |load: &dyn Fn(_, _)| {
        gemm.tiles.only(group, |tile| {
            let offset = gemm.offset(tile);
            part().each(|i| load(offset, i));
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
                gemm.tiles.only(group, |tile| {
                    let acc = gemm.accumulate(ab, part(), &region);
                    let group = range(first_cta, first_cta + parts);
                    partials.store_for(first_cta + rank, &acc, group);
                    partials.wait_for(first_cta + rank, parts);
                    let offset = gemm.offset(tile).plus(region.first_row, 0);
                    let sum = |col, width| {
                        partials.sum_cols(
                            [first_cta, parts],
                            col,
                            width,
                            c.schedule.split_k().min(4),
                        )
                    };
                    e.store_every(rank, parts, sum, outbox, offset, &state);
                });
                e.end(&state);
            });
        }
    };
    declare_roles(c, || producer_over::role(k, gemm, ab, producer), consumers);
}
