//! Two consumers of a gated GEMM: the first computes the activated gate and passes it to the second,
//! which computes the up projection and multiplies it by the gate.

use super::prelude::*;
use crate::gemm::{config::GATE_RING, epilogue::scale};

/// Declares the roles.
pub(super) fn roles<A: Element, B: Element, T: Out>(k: Builder, gemm: &GemmContext<T>) {
    let (c, e) = (&gemm.config, &gemm.epilogue);
    let ab = multicast(gemm, gemm.mainloop.ring::<A, B>(k).broadcast());
    let [width, stages] = GATE_RING;
    let gates = k.ring("gates", stages, |s| s.tile::<f32>(c.tile_m, width));
    let outbox = e.outbox(k, CONSUMERS[1]);
    producer::role(k, gemm, ab);
    let (role, region) = consumer(k, gemm, 0);
    role.body(|| {
        let [gate_scale, _] = e.begin(0).scales;
        gemm.tiles.each(|_| {
            let acc = gemm.accumulate(ab, steps(gemm.k_tiles), &region);
            for col in (0..c.tile_n).step_by(width as usize) {
                let part = e.gate(acc.slice(col..col + width), gate_scale);
                let slot = gates.acquire();
                part.store(&slot.tiles());
                slot.commit();
            }
        });
    });
    let (role, region) = consumer(k, gemm, 1);
    role.body(|| {
        let [_, up_scale] = e.begin(1).scales;
        gemm.tiles.each(|tile| {
            let offset = gemm.offset(tile);
            let acc = gemm.accumulate(ab, steps(gemm.k_tiles), &region);
            let bias = e.prefetch(offset);
            e.each_part(&[acc], offset, bias, |part, offset, _| {
                e.store_part(outbox, &part[0], offset, |up, _| {
                    let slot = gates.wait();
                    let gate = Frag::load(&slot.tiles());
                    slot.release();
                    scale::apply(up, up_scale).zip(&gate, |x, y| x * y)
                });
            });
        });
    });
}
