//! The producer: the role that loads every k-tile of every tile. One thread issues TMA loads; all
//! threads gather the operands that TMA cannot address.

use super::prelude::*;
use super::{in_producer_threads, prefetch_map, producer_role};
use crate::gemm::mainloop::AbRing;
use crate::gemm::offset::Offset;

/// k-tiles of the first tile that the producer loads before the prologue barrier.
const EARLY_K_TILES: u32 = 2;

/// Declares the role.
pub(super) fn role<A: Element, B: Element, T: Out>(
    k: Builder,
    gemm: &GemmContext<T>,
    ab: AbRing<A, B>,
) {
    let c = &gemm.config;
    let load = |offset, k_tile| load(gemm, ab, offset, k_tile);
    producer_role(k, gemm).body(|| {
        let early = match gemm.tiles.first_tile_is_static() && !gemm.class.gathers() {
            true => EARLY_K_TILES.min(c.stages),
            false => 0,
        };
        if early > 0 {
            elect(|| {
                gemm.tiles.first(|tile| {
                    let offset = gemm.offset(tile);
                    for i in 0..early {
                        if_(gemm.k_tiles.gt(i), || load(offset, i.reg()));
                    }
                });
            });
            prologue_barrier();
        }
        in_producer_threads(gemm, || {
            prefetch_map(gemm);
            let first_k_tile = Var::new(early);
            gemm.tiles.each_as_producer(|tile| {
                let offset = gemm.offset(tile);
                range(first_k_tile.get(), gemm.k_tiles).each(|i| load(offset, i));
                first_k_tile.set(0u32);
            });
        });
    });
}

/// Loads one k-tile into the next slot.
#[track_caller]
pub(super) fn load<A: Element, B: Element, T: Out>(
    gemm: &GemmContext<T>,
    ab: AbRing<A, B>,
    offset: Offset,
    k_tile: Reg<u32>,
) {
    let slot = ab.acquire();
    let load = |by| {
        gemm.mainloop
            .load(&slot, offset, k_tile, LoadPart::WHOLE, by)
    };
    if gemm.class.gathers() {
        elect(|| load(LoadBy::OneThread));
        load(LoadBy::AllThreads);
    } else {
        load(LoadBy::OneThread);
    }
    slot.commit();
}
