//! The wgmmas of a consumer, k-tile by k-tile.

use super::{AbRing, Mainloop, MainloopOrder, Operand, swap_ab};
use crate::gemm::config::Area;
use crate::gemm::problem::Accumulation;
use warpline_ir::Element;
use warpline_ir::builder::*;

impl Mainloop {
    /// Issues the wgmmas of a consumer's part of a slot.
    #[track_caller]
    pub(in crate::gemm) fn mma<A: Element, B: Element>(
        &self,
        acc: &Acc,
        (a, b): (TileRef<A>, TileRef<B>),
        area: &Area,
    ) {
        let (rows, k) = (area.rows.clone(), 0..self.config.tile_k);
        match (&self.b, self.config.swap_ab()) {
            (Operand::NMajor(_), false) => acc.mma(&a.slice(rows, k), &b.t()),
            (_, false) => acc.mma(&a.slice(rows, k.clone()), &b.slice(area.cols.clone(), k)),
            (Operand::NMajor(_), true) => swap_ab::n_major(acc, a, b, rows, k),
            (_, true) => swap_ab::k_major(acc, a, b, rows, k),
        }
    }

    /// Accumulates a consumer's part of a tile over k-tiles from the ring.
    #[track_caller]
    pub(in crate::gemm) fn accumulate<A: Element, B: Element>(
        &self,
        ab: AbRing<A, B>,
        order: MainloopOrder,
        area: &Area,
    ) -> Frag {
        let [rows, cols] = area.shape();
        match self.class.accumulation {
            Accumulation::Fast => {
                let acc = Acc::new(rows, cols);
                order.each(|k_tiles| {
                    k_tiles.each(|_| {
                        let slot = ab.wait();
                        self.mma(&acc, *slot, area);
                        slot.release_after(&acc);
                    });
                });
                acc.into_frag()
            }
            Accumulation::Promoted => order.whole(|k_tiles| {
                k_tiles.fold(Frag::zeros(rows, cols), |_, sum| {
                    let slot = ab.wait();
                    let part = Acc::new(rows, cols);
                    self.mma(&part, *slot, area);
                    part.wait();
                    slot.release();
                    sum.promote(part)
                })
            }),
        }
    }
}
