//! How a problem is solved: schedule, tiles, stages and grid, and the flags for them.

use super::schedule::{Form, Schedule};
use super::units::{BLOCKS, WIDTH};
use crate::gemm::Cluster;
use crate::gemm::tile_scheduler::TileSchedule;
use warpline_family::{fields, words};
use warpline_ir::build;

words! {
    /// In which sequence tiles are worked on.
    #[derive(Default)]
    pub enum Order {
        /// Row by row
        RowMajor = "row-major",
        /// Bands of rows, column by column inside a band
        #[default]
        Grouped = "grouped",
        /// A curve that keeps neighbors near in both directions
        Hilbert = "hilbert",
    }
}

fields! {
    /// What the caller fixes of the config.
    #[derive(Default)]
    pub struct Choice {
        /// The structure of the kernel
        pub form: Option<Form>,
        /// Rows of C in a tile
        pub tile_m: Option<u32>,
        /// Columns of C in a tile
        pub tile_n: Option<u32>,
        /// Elements of K in a stage
        pub tile_k: Option<u32>,
        /// Warpgroups that multiply
        pub consumers: Option<u32>,
        /// Stages of the ring of A
        pub stages: Option<u32>,
        /// In which sequence tiles are worked on
        pub order: Option<Order>,
        /// Rows of tiles in a band of the order grouped
        pub group: Option<u32>,
        /// CTAs of a cluster that split the sums of a tile
        pub split_k: Option<u32>,
        /// Has the L2 forget weights first
        pub hints: Option<bool>,
        /// Registers of a loading thread
        pub load_registers: Option<u32>,
        /// Registers of a multiplying thread
        pub math_registers: Option<u32>,
        /// CTAs of the grid
        pub ctas: Option<u32>,
    }
}

/// A complete config.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// The roles of the kernel, with their options.
    pub schedule: Schedule,
    /// Rows of C in a tile: tokens.
    pub tile_m: u32,
    /// Stages of the ring of A.
    pub stages: u32,
    /// In which sequence tiles are worked on.
    pub order: build::Order,
    /// CTAs of a cluster that split the sums of a tile: 1, 2 or 4.
    pub split_k: u32,
    /// Does the L2 forget weights first?
    pub hints: bool,
    /// CTAs of the grid.
    pub ctas: u32,
}

impl From<&Config> for Choice {
    fn from(c: &Config) -> Self {
        let (order, group) = match c.order {
            build::Order::RowMajor => (Order::RowMajor, None),
            build::Order::Grouped(group) => (Order::Grouped, Some(group)),
            build::Order::Hilbert => (Order::Hilbert, None),
        };
        let registers = c.schedule.registers();
        Self {
            form: Some(c.schedule.form()),
            tile_m: Some(c.tile_m),
            tile_n: Some(c.schedule.tile_n()),
            tile_k: Some(c.schedule.tile_k()),
            consumers: Some(c.schedule.consumers()),
            stages: Some(c.stages),
            order: Some(order),
            group,
            split_k: Some(c.split_k),
            hints: Some(c.hints),
            load_registers: registers.map(|r| r.load),
            math_registers: registers.map(|r| r.math),
            ctas: Some(c.ctas),
        }
    }
}

impl Config {
    /// Slots of a ring of A.
    pub(super) fn token_stages(&self) -> u32 {
        match self.schedule {
            Schedule::InTurn { .. } => self.stages * BLOCKS,
            _ => self.stages,
        }
    }

    /// Slots of a ring of weights: enough for the slots of A, and one more where all consumers
    /// share it.
    pub(super) fn weight_stages(&self) -> u32 {
        match self.schedule {
            Schedule::InTurn { .. } => self.stages,
            other => (self.stages * other.depth()).div_ceil(WIDTH) + 1,
        }
    }

    /// Does the kernel load A in codes, where it is given so? Else a step before widens it.
    pub(super) fn takes_codes(&self, a_is_coded: bool) -> bool {
        a_is_coded && matches!(self.schedule, Schedule::Warps(_))
    }

    /// Rounds whose weights are loaded before A, where a step before makes it.
    pub(super) fn lead(&self) -> u32 {
        match self.schedule {
            Schedule::Warps(_) => 1,
            _ => self.weight_stages(),
        }
    }

    /// Rounds of one of the CTAs that split K: at least its lead, of which some are zeros where K
    /// is short, so that one kernel serves every K.
    pub(super) fn rounds(&self, k: u32) -> u32 {
        k.div_ceil(WIDTH * self.schedule.feeds() * self.split_k)
            .max(self.lead())
    }

    /// Tokens that each of the CTAs that split a tile's sums finishes.
    pub(super) fn finished(&self) -> u32 {
        self.tile_m / self.split_k
    }

    /// Tiles of a C of `m` × `n`.
    pub(super) fn tiles(&self, m: u32, n: u32) -> u64 {
        u64::from(m.div_ceil(self.tile_m)) * u64::from(n.div_ceil(self.schedule.tile_n()))
    }

    /// How the tiles are dealt to CTAs.
    pub(super) fn tile_schedule(&self) -> TileSchedule {
        TileSchedule {
            unit: [self.tile_m, self.schedule.tile_n()],
            order: self.order,
            cluster: Cluster::One,
            dynamic: false,
            batched: false,
        }
    }
}
