//! Cooperative: the consumers share each tile and take turns for its last k-tiles.

use super::prelude::*;
use crate::gemm::mainloop::TAIL;
use crate::gemm::problem::Accumulation;

/// Declares the roles.
pub(super) fn roles<A: Element, B: Element, T: Out>(k: Builder, gemm: &GemmContext<T>) {
    let c = &gemm.config;
    let ab = multicast(gemm, gemm.mainloop.ring::<A, B>(k).broadcast());
    let names = &CONSUMERS[..c.consumers() as usize];
    // A consumer running ahead needs free slots while the other still holds its own.
    let tail = names.len() > 1 && c.stages > TAIL && gemm.class.accumulation == Accumulation::Fast;
    let tail = tail.then(|| k.turn("tail", names));
    let consumers = || {
        for (i, name) in (0..).zip(names) {
            let outbox = gemm.epilogue.outbox(k, name);
            let (role, region) = consumer(k, gemm, i);
            role.body(|| {
                let state = gemm.epilogue.begin(i);
                gemm.tiles.each(|tile| {
                    let offset = gemm.offset(tile).plus(region.first_row, 0);
                    let bias = gemm.epilogue.prefetch(offset);
                    let order = match tail {
                        None => MainloopOrder::Unordered(steps(gemm.k_tiles)),
                        Some(turn) => MainloopOrder::ExclusiveTail(turn, gemm.k_tiles),
                    };
                    let acc = gemm.mainloop.accumulate(ab, order, &region);
                    gemm.epilogue.store(&acc, outbox, offset, &state, bias);
                });
                gemm.epilogue.end(&state);
            });
        }
    };
    declare_roles(c, || producer::role(k, gemm, ab), consumers);
}
