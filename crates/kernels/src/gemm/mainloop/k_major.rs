//! An operand with K innermost in shared memory: A as [M, K], B as [N, K].

use super::gather::{KDim, SPAN};
use super::source::{Extents, LoadBy, Side, Source};
use super::{FillSlot, KTile, LoadPart, Mainloop, box_cols, load_parts, tiled_map};
use crate::gemm::config::Config;
use crate::gemm::problem::Class;
use warpline_ir::Element;
use warpline_ir::builder::*;

/// An operand with K innermost.
pub(super) struct KMajor {
    side: Side,
    source: Source,
}

impl KMajor {
    /// Declares the parameters; a row of a TMA box has at most 128 bytes.
    pub(super) fn declare(k: Builder, class: &Class, c: &Config, side: Side, e: Extents) -> Self {
        let rows = side.tile_extent(c) / load_parts(c)[side as usize];
        let boxes = |dtype| tiled_map(class, side, dtype, box_cols(class, c), rows);
        Self {
            side,
            source: Source::declare(k, class, (side, side.name()), boxes, e),
        }
    }

    /// Loads a k-tile into a tile of the slot.
    #[track_caller]
    pub(super) fn load<A: Element, B: Element, E: Element>(
        &self,
        mainloop: &Mainloop,
        (slot, to): (&FillSlot<A, B>, TileRef<E>),
        tile: KTile,
        part: LoadPart,
        by: LoadBy,
    ) {
        let (c, side) = (&mainloop.config, self.side);
        let (tile_rows, rows) = (side.tile_extent(c), part.rows(side.tile_extent(c)));
        if let Some(gather) = self.source.gather(by) {
            let to = (to.slice(rows.clone(), 0..c.tile_k), tile_rows * SPAN);
            let origin = [tile.mn(side) + rows.start, tile.k];
            return gather.load(to, origin, mainloop.batch(side, tile), KDim::Cols);
        }
        let width = box_cols(&mainloop.class, c);
        for k in (0..c.tile_k).step_by(width as usize) {
            let to = to.slice(rows.clone(), k..k + width);
            let origin = [tile.k + k, tile.mn(side) + rows.start];
            let batch = mainloop.batch(side, tile);
            mainloop.load_box(slot, (side, self.source), to, origin, batch, by);
        }
    }
}
