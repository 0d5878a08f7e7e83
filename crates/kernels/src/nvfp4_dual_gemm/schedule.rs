//! The schedules of the kernel with their options.

use super::units::{BLOCKS_PER_PANEL, K_BLOCK, MMA_WARPS, OUTPUTS, PANEL_K};
use crate::roles::RegisterBudget;
use warpline_family::keywords;

keywords! {
    /// The division of the kernel into roles, as the flag `--schedule` names it.
    pub enum ScheduleKind {
        /// A producer; consumers that decode weights and multiply
        Cooperative = "cooperative",
        /// For few tokens: a producer; warps that each decode and multiply part of K; a role that adds the parts
        Warps = "warps",
        /// A producer; a warpgroup that decodes weights into a second ring; consumers
        Dequantizer = "dequantizer",
    }
}

/// The schedule of a kernel with its options.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Schedule {
    /// Cooperative: each consumer has its own outputs and reads every slot.
    OwnOutputs {
        /// The consumers.
        consumers: Consumers,
        /// Elements of K that a consumer decodes and multiplies per step.
        depth: KDepth,
    },
    /// Cooperative: the consumers have the same outputs and take slots in turn, each from its own rings.
    InTurn {
        /// Number of consumers, 2 to 4.
        consumers: u32,
    },
    /// A warpgroup decodes weights into a second ring; consumers with their own outputs read it.
    Dequantizer(DequantConsumers),
    /// Each warp decodes and multiplies part of K; a warpgroup adds the parts and runs the epilogue.
    Warps(WarpTile),
}

/// Consumers with their own outputs. Two or three of them need more registers than they start with, so
/// `setmaxnreg` moves registers between roles.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Consumers {
    /// One warpgroup.
    One,
    /// Two warpgroups with register budgets.
    Two(RegisterBudget),
    /// Three warpgroups with register budgets.
    Three(RegisterBudget),
    /// Four warpgroups, which start with all available registers.
    Four,
}

/// Elements of K that a consumer decodes and multiplies per step.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum KDepth {
    /// 64: one block.
    Block,
    /// 128: two blocks.
    TwoBlocks,
}

/// The consumers of the schedule `dequantizer`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DequantConsumers {
    /// One warpgroup.
    One,
    /// Two warpgroups with register budgets. The budgets of the four warpgroups sum to 512; the
    /// dequantizer gets the rest.
    Two(RegisterBudget),
}

/// Tile shape of the schedule `warps`: columns of C, and elements of K per stage. Every warp has at
/// least one block of each stage.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WarpTile {
    /// 32 columns, 512 elements of K.
    N32K512,
    /// 32 columns, 1024 elements of K.
    N32K1024,
    /// 64 columns, 256 elements of K.
    N64K256,
    /// 64 columns, 512 elements of K.
    N64K512,
    /// 64 columns, 1024 elements of K.
    N64K1024,
}

impl WarpTile {
    /// All tile shapes.
    pub(super) const ALL: [Self; 5] = [
        WarpTile::N32K512,
        WarpTile::N32K1024,
        WarpTile::N64K256,
        WarpTile::N64K512,
        WarpTile::N64K1024,
    ];

    /// Returns the columns of C in a tile and the elements of K per stage.
    pub(super) fn n_and_k(self) -> [u32; 2] {
        match self {
            WarpTile::N32K512 => [32, 512],
            WarpTile::N32K1024 => [32, 1024],
            WarpTile::N64K256 => [64, 256],
            WarpTile::N64K512 => [64, 512],
            WarpTile::N64K1024 => [64, 1024],
        }
    }

    /// Returns the panels of a slot.
    pub(super) fn panels(self) -> u32 {
        self.n_and_k()[1] / PANEL_K
    }

    /// Returns the sets of 32 outputs.
    pub(super) fn output_sets(self) -> u32 {
        self.n_and_k()[0] / OUTPUTS
    }

    /// Returns the warps that share a set of outputs, each with a part of K.
    pub(super) fn k_slices(self) -> u32 {
        MMA_WARPS / self.output_sets()
    }

    /// Returns how many panels of a slot each warp works on; a warp multiplies one block per panel.
    pub(super) fn panels_per_warp(self) -> u32 {
        self.panels() * BLOCKS_PER_PANEL / self.k_slices()
    }
}

impl Schedule {
    /// Returns the kind that `--schedule` names.
    pub fn kind(self) -> ScheduleKind {
        match self {
            Schedule::OwnOutputs { .. } | Schedule::InTurn { .. } => ScheduleKind::Cooperative,
            Schedule::Dequantizer(_) => ScheduleKind::Dequantizer,
            Schedule::Warps(_) => ScheduleKind::Warps,
        }
    }

    /// Returns the warpgroups that multiply.
    pub fn consumers(self) -> u32 {
        match self {
            Schedule::OwnOutputs { consumers, .. } => match consumers {
                Consumers::One => 1,
                Consumers::Two(_) => 2,
                Consumers::Three(_) => 3,
                Consumers::Four => 4,
            },
            Schedule::InTurn { consumers } => consumers,
            Schedule::Dequantizer(DequantConsumers::One) => 1,
            Schedule::Dequantizer(DequantConsumers::Two(_)) => 2,
            Schedule::Warps(_) => MMA_WARPS / 4,
        }
    }

    /// Returns the columns of C in a tile.
    pub fn tile_n(self) -> u32 {
        match self {
            Schedule::OwnOutputs { .. } | Schedule::Dequantizer(_) => OUTPUTS * self.consumers(),
            Schedule::InTurn { .. } => OUTPUTS,
            Schedule::Warps(tile) => tile.n_and_k()[0],
        }
    }

    /// Returns the elements of K per stage: of the ring of A, or of the weight ring in [`Schedule::InTurn`].
    pub fn tile_k(self) -> u32 {
        match self {
            Schedule::InTurn { .. } => PANEL_K,
            Schedule::Warps(tile) => tile.n_and_k()[1],
            _ => self.k_per_step(),
        }
    }

    /// Returns the elements of K that a consumer decodes and multiplies per step.
    pub(super) fn k_per_step(self) -> u32 {
        match self {
            Schedule::OwnOutputs { depth, .. } => match depth {
                KDepth::Block => K_BLOCK,
                KDepth::TwoBlocks => 2 * K_BLOCK,
            },
            Schedule::InTurn { .. } | Schedule::Dequantizer(_) => K_BLOCK,
            Schedule::Warps(tile) => tile.n_and_k()[1],
        }
    }

    /// Returns the register budgets by role; `None`: no `setmaxnreg`.
    pub fn registers(self) -> Option<RegisterBudget> {
        match self {
            Schedule::OwnOutputs {
                consumers: Consumers::Two(budgets) | Consumers::Three(budgets),
                ..
            }
            | Schedule::Dequantizer(DequantConsumers::Two(budgets)) => Some(budgets),
            _ => None,
        }
    }

    /// Returns the register budget of the dequantizer; `None`: no `setmaxnreg`.
    pub(super) fn dequantizer_registers(self) -> Option<u32> {
        match self {
            Schedule::Dequantizer(DequantConsumers::Two(RegisterBudget { load, math })) => {
                512u32.checked_sub(load + 2 * math)
            }
            _ => None,
        }
    }

    /// Returns the panels of codes along K that one round of the mainloop covers: a slot in `warps`, one per
    /// consumer in [`Schedule::InTurn`], otherwise one.
    pub(super) fn panels_per_round(self) -> u32 {
        match self {
            Schedule::Warps(tile) => tile.panels(),
            Schedule::InTurn { consumers } => consumers,
            _ => 1,
        }
    }

    /// Returns the panels of codes per slot.
    pub(super) fn panels(self) -> u32 {
        match self {
            Schedule::Warps(tile) => tile.panels(),
            _ => 1,
        }
    }

    /// Returns the index of a consumer's rings.
    pub(super) fn ring_index(self, consumer: u32) -> u32 {
        match self {
            Schedule::InTurn { .. } => consumer,
            _ => 0,
        }
    }

    /// Returns the first of a consumer's outputs in a tile: a column of C, and a row of each weight tile.
    pub(super) fn first_row(self, consumer: u32) -> u32 {
        match self {
            Schedule::InTurn { .. } => 0,
            _ => consumer * OUTPUTS,
        }
    }
}

/// Returns the most 128-row blocks of scales that `rows` rows can touch if their first row is a multiple of
/// `rows`.
pub(super) fn scale_row_blocks(rows: u32) -> u32 {
    let step = 1 << rows.trailing_zeros().min(7);
    (128 - step + rows).div_ceil(128)
}
