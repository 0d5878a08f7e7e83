//! Two consumers of a gated GEMM: the first computes the activated gate and passes it to the second,
//! which computes up and multiplies both.

use super::prelude::*;
use crate::gemm::{config::GATE_RING, epilogue::scale};

/// Declares the roles.
pub(super) fn roles<A: Element, B: Element, T: Out>(k: Builder, gemm: &GemmContext<T>) {
    let c = &gemm.config;
    let ab = multicast(gemm, gemm.mainloop.ring::<A, B>(k).broadcast());
    let [width, stages] = GATE_RING;
    let gates = k.ring("gates", stages, |s| s.tile::<f32>(c.tile_m, width));
    let outbox = gemm.epilogue.outbox(k, CONSUMERS[1]);
    producer::role(k, gemm, ab);
    let (role, area) = consumer(k, gemm, 0);
    role.body(|| {
        let [by, _] = gemm.epilogue.begin(0).scales;
        gemm.tiles.each(|_| {
            let acc = gemm.accumulate(ab, steps(gemm.k_tiles), &area);
            for col in (0..c.tile_n).step_by(width as usize) {
                let part = gemm.epilogue.gate(acc.slice(col..col + width), by);
                let slot = gates.acquire();
                part.store(&slot.tiles());
                slot.commit();
            }
        });
    });
    let (role, area) = consumer(k, gemm, 1);
    role.body(|| {
        let [_, by] = gemm.epilogue.begin(1).scales;
        gemm.tiles.each(|tile| {
            let at = gemm.offset(tile);
            let acc = gemm.accumulate(ab, steps(gemm.k_tiles), &area);
            let bias = gemm.epilogue.prefetch(at);
            gemm.epilogue.each_part(&[acc], at, bias, |part, at, _| {
                gemm.epilogue.store_part(outbox, &part[0], at, |some, _| {
                    let slot = gates.wait();
                    let gate = Frag::load(&slot.tiles());
                    slot.release();
                    scale::apply(some, by).zip(&gate, |x, y| x * y)
                });
            });
        });
    });
}
