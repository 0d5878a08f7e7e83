//! Schedules: the roles of the kernel, with the options that each kind has.

use super::scales::TILE_WORDS;
use super::units::{BLOCK, BLOCKS, OUTPUTS, WARPS, WIDTH};
use crate::roles::Registers;
use warpline_family::words;

words! {
    /// The structure of the kernel.
    pub enum Form {
        /// One loader, and warpgroups that decode weights and multiply them
        Cooperative = "cooperative",
        /// One loader, warps that multiply each for itself, and a role that adds up: for few rows
        Warps = "warps",
        /// One loader, a warpgroup that decodes weights into a second ring, and consumers
        Dequantizer = "dequantiser" | "dequantizer",
    }
}

/// The roles of the kernel, with the options that each kind has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Schedule {
    /// Consumers have outputs of their own and see every slot.
    OwnOutputs {
        /// The warpgroups.
        consumers: Consumers,
        /// Elements of K that they decode and multiply at a time.
        depth: Depth,
    },
    /// Consumers have the same outputs and take slots in turn, each from rings of its own.
    InTurn {
        /// The warpgroups: 2 to 4.
        consumers: u32,
    },
    /// A warpgroup decodes weights into a second ring, and consumers with outputs of their own
    /// multiply from there.
    Dequantizer(Dequantizer),
    /// Warps decode and multiply each for itself, and a warpgroup adds up and finishes.
    Warps(WarpTile),
}

/// Consumers with outputs of their own. Where two or three do not start with the registers that
/// they need, registers move between roles.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Consumers {
    /// One warpgroup.
    One,
    /// Two, with their budgets.
    Two(Registers),
    /// Three, with their budgets.
    Three(Registers),
    /// Four, which start with all registers there are.
    Four,
}

/// Elements of K that a consumer decodes and multiplies at a time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Depth {
    /// 64: a block of scales.
    Block,
    /// 128.
    TwoBlocks,
}

/// Consumers behind a dequantizer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Dequantizer {
    /// One warpgroup.
    One,
    /// Two; the dequantizer gets the registers that they and the loader leave of 512.
    Two(Registers),
}

/// Columns of C in a tile, and elements of K in a stage, of warps that multiply each for itself:
/// every warp has at least a block of each stage.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WarpTile {
    /// 32 columns, 512 of K.
    N32K512,
    /// 32 columns, 1024 of K.
    N32K1024,
    /// 64 columns, 256 of K.
    N64K256,
    /// 64 columns, 512 of K.
    N64K512,
    /// 64 columns, 1024 of K.
    N64K1024,
}

impl WarpTile {
    /// Every one.
    pub(super) const ALL: [Self; 5] = [
        WarpTile::N32K512,
        WarpTile::N32K1024,
        WarpTile::N64K256,
        WarpTile::N64K512,
        WarpTile::N64K1024,
    ];

    /// Columns of C, and elements of K.
    pub(super) fn sides(self) -> [u32; 2] {
        match self {
            WarpTile::N32K512 => [32, 512],
            WarpTile::N32K1024 => [32, 1024],
            WarpTile::N64K256 => [64, 256],
            WarpTile::N64K512 => [64, 512],
            WarpTile::N64K1024 => [64, 1024],
        }
    }

    /// Panels of a slot.
    pub(super) fn panels(self) -> u32 {
        self.sides()[1] / WIDTH
    }

    /// Sets of 32 outputs.
    pub(super) fn halves(self) -> u32 {
        self.sides()[0] / OUTPUTS
    }

    /// Warps of the same outputs, each with a part of K and so of the sums.
    pub(super) fn parts(self) -> u32 {
        WARPS / self.halves()
    }

    /// Panels of a slot of which a warp has a block.
    pub(super) fn panels_each(self) -> u32 {
        self.panels() * BLOCKS / self.parts()
    }
}

impl Schedule {
    /// Its form.
    pub fn form(self) -> Form {
        match self {
            Schedule::OwnOutputs { .. } | Schedule::InTurn { .. } => Form::Cooperative,
            Schedule::Dequantizer(_) => Form::Dequantizer,
            Schedule::Warps(_) => Form::Warps,
        }
    }

    /// Warpgroups that multiply.
    pub fn consumers(self) -> u32 {
        match self {
            Schedule::OwnOutputs { consumers, .. } => match consumers {
                Consumers::One => 1,
                Consumers::Two(_) => 2,
                Consumers::Three(_) => 3,
                Consumers::Four => 4,
            },
            Schedule::InTurn { consumers } => consumers,
            Schedule::Dequantizer(Dequantizer::One) => 1,
            Schedule::Dequantizer(Dequantizer::Two(_)) => 2,
            Schedule::Warps(_) => WARPS / 4,
        }
    }

    /// Columns of C in a tile.
    pub fn tile_n(self) -> u32 {
        match self {
            Schedule::OwnOutputs { .. } | Schedule::Dequantizer(_) => OUTPUTS * self.consumers(),
            Schedule::InTurn { .. } => OUTPUTS,
            Schedule::Warps(tile) => tile.sides()[0],
        }
    }

    /// Elements of K in a stage; where consumers take slots in turn, in a slot.
    pub fn tile_k(self) -> u32 {
        match self {
            Schedule::InTurn { .. } => WIDTH,
            Schedule::Warps(tile) => tile.sides()[1],
            _ => self.depth(),
        }
    }

    /// Elements of K that a consumer decodes and multiplies at a time.
    pub(super) fn depth(self) -> u32 {
        match self {
            Schedule::OwnOutputs { depth, .. } => match depth {
                Depth::Block => BLOCK,
                Depth::TwoBlocks => 2 * BLOCK,
            },
            Schedule::InTurn { .. } | Schedule::Dequantizer(_) => BLOCK,
            Schedule::Warps(tile) => tile.sides()[1],
        }
    }

    /// Register budgets by role; none where none are moved.
    pub fn registers(self) -> Option<Registers> {
        match self {
            Schedule::OwnOutputs {
                consumers: Consumers::Two(budgets) | Consumers::Three(budgets),
                ..
            }
            | Schedule::Dequantizer(Dequantizer::Two(budgets)) => Some(budgets),
            _ => None,
        }
    }

    /// Register budget of the role that decodes into a second ring, where registers are moved.
    pub(super) fn dequantizer_registers(self) -> Option<u32> {
        match self {
            Schedule::Dequantizer(Dequantizer::Two(Registers { load, math })) => {
                512u32.checked_sub(load + 2 * math)
            }
            _ => None,
        }
    }

    /// Panels of codes of a round: one for each feed.
    pub(super) fn feeds(self) -> u32 {
        match self {
            Schedule::Warps(tile) => tile.panels(),
            Schedule::InTurn { consumers } => consumers,
            _ => 1,
        }
    }

    /// Panels of codes of a slot.
    pub(super) fn panels(self) -> u32 {
        match self {
            Schedule::Warps(tile) => tile.panels(),
            _ => 1,
        }
    }

    /// Words of a slot of scales for `rows` rows.
    pub(super) fn slot_words(self, rows: u32) -> u32 {
        bands(rows) * self.panels() * BLOCKS * TILE_WORDS
    }

    /// Which slot of a round is the first of a consumer.
    pub(super) fn turn_of(self, consumer: u32) -> u32 {
        match self {
            Schedule::InTurn { .. } => consumer,
            _ => 0,
        }
    }

    /// The first row of a consumer's outputs in a tile.
    pub(super) fn row_of(self, consumer: u32) -> u32 {
        match self {
            Schedule::InTurn { .. } => 0,
            _ => consumer * OUTPUTS,
        }
    }
}

/// Blocks of 128 rows of scales that `rows` rows may lie in, which start at a multiple of `rows`.
pub(super) fn bands(rows: u32) -> u32 {
    let step = 1 << rows.trailing_zeros().min(7);
    (128 - step + rows).div_ceil(128)
}
