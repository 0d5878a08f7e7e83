//! The store of swap-AB: the rows of a tile are columns of C.

use super::{BiasValues, Epilogue, EpilogueState, Out};
use crate::gemm::offset::Offset;
use warpline_ir::builder::*;

impl<T: Out> Epilogue<T> {
    /// Applies the ops to a tile whose columns are rows of C (swap-AB) and stores it, part by part.
    #[track_caller]
    pub(super) fn store_swapped(
        &self,
        accumulators: &[Frag],
        outbox: Option<Outbox<T>>,
        offset: Offset,
        state: &EpilogueState,
        bias: BiasValues<T>,
    ) {
        let width = self.config.staging.width;
        for col in (0..self.config.tile_m).step_by(width as usize) {
            let cols = col..col + width;
            let slices = accumulators.iter().map(|x| x.slice(cols.clone()));
            let slices: Vec<Frag> = slices.collect();
            let offset = offset.plus(0, col);
            let tile = self.apply(&slices, offset, state, bias.slice(cols));
            self.store_transposed(outbox, &tile, offset);
        }
    }

    /// Stores a tile whose rows are columns of C (swap-AB).
    #[track_caller]
    pub(super) fn store_transposed(&self, outbox: Option<Outbox<T>>, tile: &Frag, offset: Offset) {
        let Some((outbox, c)) = outbox.zip(self.c).filter(|_| self.elements.is_none()) else {
            return self.store_elements(tile, offset);
        };
        match offset.batch {
            None => T::store_transposed(outbox, tile, c, [offset.row, offset.col]),
            Some(z) => T::store_transposed(outbox, tile, c, [offset.row, offset.col, z]),
        }
    }
}
