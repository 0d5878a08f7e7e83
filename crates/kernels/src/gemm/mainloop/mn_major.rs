//! An operand with M or N innermost in shared memory: A as [K, M], B as [K, N]. wgmma reads 16-bit
//! types in this layout too.

use super::gather::{KDim, SPAN};
use super::source::{Extents, LoadBy, Side, Source};
use super::{FillSlot, KTile, LoadPart, Mainloop, tiled_map};
use crate::gemm::config::Config;
use crate::gemm::problem::Class;
use warpline_ir::Element;
use warpline_ir::builder::*;

/// Columns of a panel: 128 bytes of a row.
const PANEL: u32 = 64;

/// An operand with M or N innermost.
pub(super) struct MnMajor {
    side: Side,
    source: Source,
}

impl MnMajor {
    /// Declares the parameters; a TMA box is a panel of 64 columns.
    pub(super) fn declare(k: Builder, class: &Class, c: &Config, side: Side, e: Extents) -> Self {
        let boxes = |dtype| tiled_map(class, side, dtype, PANEL, c.tile_k);
        Self {
            side,
            source: Source::declare(k, class, (side, side.name()), boxes, e),
        }
    }

    /// Loads a k-tile into a tile of the slot: every `part.count`-th panel.
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
        if let Some(gather) = self.source.gather(by) {
            let origin = [tile.k, tile.mn(side)];
            return gather.load(
                (to, c.tile_k * SPAN),
                origin,
                mainloop.batch(side, tile),
                KDim::Rows,
            );
        }
        for (i, col) in (0..).zip((0..side.tile_extent(c)).step_by(PANEL as usize)) {
            if i % part.count == part.index {
                let to = to.slice(0..c.tile_k, col..col + PANEL);
                let origin = [tile.mn(side) + col, tile.k];
                let batch = mainloop.batch(side, tile);
                mainloop.load_box(slot, (side, self.source), to, origin, batch, by);
            }
        }
    }
}
