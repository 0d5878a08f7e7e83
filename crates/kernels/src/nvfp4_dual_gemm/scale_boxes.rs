//! The scales of a tile: the boxes that TMA loads, and their places in a slot.

use super::scales::TILE_WORDS;
use super::schedule::scale_row_blocks;
use super::units::{BLOCKS_PER_PANEL, PANEL_K};
use crate::nvfp4::ScaleLayout;
use warpline_ir::builder::*;
use warpline_ir::{DType, Swizzle, TensorMapDecl};

/// The boxes of scales. A word has the four scales of 64 elements of K of a row.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum ScaleBoxes {
    /// Blocks of 128 rows of the block layout.
    Blocks,
    /// Rows of plain scales: 16 bytes for each panel of a row. TMA needs a row stride of whole 16 bytes.
    Rows,
}

impl ScaleBoxes {
    /// Returns the boxes for the scales of a call. Plain scales that TMA cannot address are rearranged to
    /// blocks by an earlier launch.
    pub(crate) fn of(layout: ScaleLayout, k: u32) -> Self {
        match layout {
            ScaleLayout::Plain if k.is_multiple_of(PANEL_K) => ScaleBoxes::Rows,
            _ => ScaleBoxes::Blocks,
        }
    }

    /// Returns the words in a slot for `rows` rows and `panels` panels.
    pub(super) fn words(self, rows: u32, panels: u32) -> u32 {
        let words_per_row = panels * BLOCKS_PER_PANEL;
        match self {
            ScaleBoxes::Blocks => scale_row_blocks(rows) * words_per_row * TILE_WORDS,
            ScaleBoxes::Rows => rows * words_per_row,
        }
    }

    /// Returns the distance in words of the next 64 elements of K.
    pub(super) fn block_words(self) -> u32 {
        match self {
            ScaleBoxes::Blocks => TILE_WORDS,
            ScaleBoxes::Rows => 1,
        }
    }

    /// Returns the distance in words of a row `rows` below, if both are in one block of 64 rows.
    pub(super) fn row_words(self, rows: u32, panels: u32) -> u32 {
        match self {
            // A tile of the layout has the words of rows 0, 32, 64 and 96 side by side.
            ScaleBoxes::Blocks => rows % 32 * 4 + rows / 32,
            ScaleBoxes::Rows => rows * panels * BLOCKS_PER_PANEL,
        }
    }

    /// Returns the word offset of the scales of `row` for the first 64 elements of K of a slot;
    /// `first_row` is the slot's first row.
    #[track_caller]
    pub(super) fn offset(self, row: Reg<u32>, first_row: Reg<u32>, panels: u32) -> Reg<u32> {
        match self {
            ScaleBoxes::Blocks => {
                let row_block = (row >> 7u32) - (first_row >> 7u32);
                let inside = ((row & 31u32) << 2u32) + ((row >> 5u32) & 3u32);
                row_block * (BLOCKS_PER_PANEL * TILE_WORDS) + inside
            }
            ScaleBoxes::Rows => (row - first_row) * (panels * BLOCKS_PER_PANEL),
        }
    }

    /// Declares the tensor map, with boxes for `rows` rows.
    pub(super) fn map(self, rows: u32, panels: u32) -> TensorMapDecl {
        let blocks = panels * BLOCKS_PER_PANEL;
        match self {
            ScaleBoxes::Blocks => {
                TensorMapDecl::tiled(DType::U32, [TILE_WORDS, blocks, scale_row_blocks(rows)])
            }
            ScaleBoxes::Rows => TensorMapDecl {
                swizzle: Swizzle::None,
                ..TensorMapDecl::tiled(DType::U32, [blocks, rows])
            },
        }
    }

    /// Loads the scales from `row` and `panel_index` on.
    #[track_caller]
    pub(super) fn load<L: RingTiles>(
        self,
        slot: &Slot<L, Producing>,
        from: TensorMap,
        to: TileRef<u32>,
        [panel_index, row]: [Reg<u32>; 2],
        hint: Option<warpline_ir::ops::policy::CacheHint>,
    ) {
        let block = panel_index * BLOCKS_PER_PANEL;
        match self {
            ScaleBoxes::Blocks => {
                slot.load_with(from, to, [0u32.reg(), block, row >> 7u32], None, hint);
            }
            ScaleBoxes::Rows => slot.load_with(from, to, [block, row], None, hint),
        }
    }
}
