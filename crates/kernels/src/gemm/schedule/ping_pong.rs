//! Ping-pong: the two consumers compute alternate tiles; one multiplies while the other stores.

use super::prelude::*;

/// Declares the roles.
pub(super) fn roles<A: Element, B: Element, T: Out>(k: Builder, gemm: &GemmContext<T>) {
    let ab = multicast(gemm, gemm.mainloop.ring::<A, B>(k).round_robin());
    let turn = k.turn("tensor cores", [CONSUMERS[0], CONSUMERS[1]]);
    producer::role(k, gemm, ab);
    for i in 0..2 {
        let outbox = gemm.epilogue.outbox(k, CONSUMERS[i as usize]);
        let (role, region) = consumer(k, gemm, i);
        role.body(|| {
            let state = gemm.epilogue.begin(i);
            let skip = || ab.skip(gemm.k_tiles);
            gemm.tiles.each_second(i, skip, |tile| {
                let offset = gemm.offset(tile);
                let bias = gemm.epilogue.prefetch(offset);
                let order = MainloopOrder::Exclusive(turn, steps(gemm.k_tiles));
                let acc = gemm.mainloop.accumulate(ab, order, &region);
                gemm.epilogue.store(&acc, outbox, offset, &state, bias);
            });
            gemm.epilogue.end(&state);
        });
    }
}
