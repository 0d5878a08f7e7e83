//! Split-K through global memory: each CTA of a group computes a part of K and stores its accumulators;
//! then each CTA adds all parts of some columns. Groups have any size, and need no cluster.

use super::part_of_k::PartOfK;
use super::prelude::*;

/// The accumulators of a column block that a CTA loads at a time.
const PARTS_IN_FLIGHT: u32 = 4;

/// Declares the roles.
pub(super) fn roles<A: Element, B: Element, T: Out>(k: Builder, gemm: &GemmContext<T>) {
    let (c, e) = (&gemm.config, &gemm.epilogue);
    let ab = gemm.mainloop.ring::<A, B>(k).broadcast();
    let part = PartOfK::declare(k);
    let producer = |load: &dyn Fn(_, _)| {
        gemm.tiles.only(part.group, |tile| {
            let offset = gemm.offset(tile);
            part.k_tiles().each(|i| load(offset, i));
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
                gemm.tiles.only(part.group, |tile| {
                    let acc = gemm.accumulate(ab, part.k_tiles(), &region);
                    partials.store_for(part.cta(), &acc, part.ctas());
                    partials.wait_for(part.cta(), part.parts);
                    let offset = gemm.offset(tile).plus(region.first_row, 0);
                    let tiles = [part.first_cta(), part.parts];
                    let in_flight = c.schedule.split_k().min(PARTS_IN_FLIGHT);
                    let sum = |col, width| partials.sum_cols(tiles, col, width, in_flight);
                    e.store_every(part.rank, part.parts, sum, outbox, offset, &state);
                });
                e.end(&state);
            });
        }
    };
    declare_roles(c, || producer_over::role(k, gemm, ab, producer), consumers);
}
