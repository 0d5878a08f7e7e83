//! Storer: cooperative; the consumers pass their tiles through rings to a role that stores them.

use super::prelude::*;
use crate::gemm::config::Staging;

/// Declares the roles.
pub(super) fn roles<A: Element, B: Element, T: Out>(k: Builder, gemm: &GemmContext<T>) {
    let (c, e) = (&gemm.config, &gemm.epilogue);
    let ab = multicast(gemm, gemm.mainloop.ring::<A, B>(k).broadcast());
    let Staging { width, stages } = c.staging;
    let ring = |i| k.ring(&format!("out{i}"), stages, |s| s.tile(c.rows(), width));
    let rings: Vec<Ring<Tile<T>>> = (0..c.consumers()).map(ring).collect();
    producer::role(k, gemm, ab);
    for (i, &out) in (0..).zip(&rings) {
        let (role, region) = consumer(k, gemm, i);
        role.body(|| {
            let state = e.begin(i);
            gemm.tiles.each(|tile| {
                let offset = gemm.offset(tile).plus(region.first_row, 0);
                let bias = e.prefetch(offset);
                let acc = gemm.accumulate(ab, steps(gemm.k_tiles), &region);
                e.each_part(&e.split(&acc), offset, bias, |part, offset, bias| {
                    let part = e.apply(&part, offset, &state, bias);
                    let slot = out.acquire();
                    T::store(&part, &slot.tiles());
                    slot.commit();
                });
            });
        });
    }
    super::copy_role(k, "store", c).body(|| {
        elect(|| {
            gemm.tiles.each(|tile| {
                let offset = gemm.offset(tile);
                for col in (0..c.tile_n).step_by(width as usize) {
                    for (i, out) in (0..).zip(&rings) {
                        e.store_slot(out.wait(), offset.plus(i * c.rows(), col));
                    }
                }
            });
        });
    });
}
