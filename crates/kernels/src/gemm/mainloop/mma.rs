//! The wgmmas of one k-tile, for every layout of the operands.

use super::Mainloop;
use crate::gemm::config::TileRegion;
use warpline_ir::Element;
use warpline_ir::builder::*;

impl Mainloop {
    /// Issues the wgmmas of a consumer's region, for the k-tile in a slot.
    #[track_caller]
    pub(in crate::gemm) fn mma<A: Element, B: Element>(
        &self,
        acc: &Acc,
        (a, b): (TileRef<A>, TileRef<B>),
        region: &TileRegion,
    ) {
        let (rows, cols, k) = (
            region.rows.clone(),
            region.cols.clone(),
            0..self.config.tile_k,
        );
        let (a_is_k_major, b_is_k_major) = (self.class.a.k_major, self.class.b.k_major);
        match (self.config.swap_ab(), a_is_k_major, b_is_k_major) {
            (false, true, true) => acc.mma(&a.slice(rows, k.clone()), &b.slice(cols, k)),
            (false, true, false) => acc.mma(&a.slice(rows, k), &b.t()),
            (false, false, true) => acc.mma(&a.slice(k.clone(), rows).t(), &b.slice(cols, k)),
            (false, false, false) => acc.mma(&a.slice(k, rows).t(), &b.t()),
            // Swap-AB: B is the left operand, so that its rows fill the 64 rows of a wgmma when M is
            // small.
            (true, true, true) => acc.mma(&b.slice(rows, k), &a),
            (true, true, false) => acc.mma(&b.slice(k, rows).t(), &a),
            (true, false, true) => acc.mma(&b.slice(rows, k), &a.t()),
            (true, false, false) => acc.mma(&b.slice(k, rows).t(), &a.t()),
        }
    }
}
