//! The wgmmas of a consumer, k-tile by k-tile.

use super::{AbRing, Mainloop, MainloopOrder};
use crate::gemm::config::TileRegion;
use crate::gemm::problem::Accumulation;
use warpline_ir::Element;
use warpline_ir::builder::*;

impl Mainloop {
    /// Accumulates a consumer's region of a tile over k-tiles from the ring.
    #[track_caller]
    pub(in crate::gemm) fn accumulate<A: Element, B: Element>(
        &self,
        ab: AbRing<A, B>,
        order: MainloopOrder,
        region: &TileRegion,
    ) -> Frag {
        let [rows, cols] = region.shape();
        match self.class.accumulation {
            Accumulation::Fast => {
                let acc = Acc::new(rows, cols);
                order.for_each_range(|k_tiles| {
                    k_tiles.each(|_| {
                        let slot = ab.wait();
                        self.mma(&acc, *slot, region);
                        slot.release_after(&acc);
                    });
                });
                acc.into_frag()
            }
            Accumulation::Promoted => order.with_all(|k_tiles| {
                k_tiles.fold(Frag::zeros(rows, cols), |_, sum| {
                    let slot = ab.wait();
                    let partial = Acc::new(rows, cols);
                    self.mma(&partial, *slot, region);
                    partial.wait();
                    slot.release();
                    sum.promote(partial)
                })
            }),
        }
    }
}
