//! The config: schedule, tiles, stages and grid, and the flags that set them.

use super::kernel_spec::Outputs;
use super::schedule::{Schedule, ScheduleKind};
use super::shape::Shape;
use super::units::{BLOCKS_PER_PANEL, PANEL_K};
use crate::gemm::Cluster;
use crate::gemm::tile_scheduler::TileSchedule;
use warpline_family::{fields, keywords};
use warpline_ir::builder;

keywords! {
    /// The order in which output tiles are computed (rasterization).
    #[derive(Default)]
    pub enum Raster {
        /// Row by row
        RowMajor = "row-major",
        /// Groups of tile rows, column by column inside a group (Triton's GROUP_SIZE_M)
        #[default]
        Grouped = "grouped",
        /// A Hilbert curve: consecutive tiles are neighbors in M or N
        Hilbert = "hilbert",
    }
}

fields! {
    /// The part of a config that the caller fixes.
    #[derive(Default)]
    pub struct Choice {
        /// Division of the kernel into roles
        pub schedule: Option<ScheduleKind>,
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
        /// Order in which output tiles are computed
        pub raster: Option<Raster>,
        /// Tile rows in a group of --raster grouped (Triton's GROUP_SIZE_M)
        pub group: Option<u32>,
        /// CTAs of a cluster that each compute part of K of a tile: 1, 2 or 4
        pub split_k: Option<u32>,
        /// L2 cache hint evict_first for the weights
        pub cache_hints: Option<bool>,
        /// Register budget of a loading thread (setmaxnreg)
        pub load_registers: Option<u32>,
        /// Register budget of a consumer thread (setmaxnreg)
        pub math_registers: Option<u32>,
        /// CTAs of the grid
        pub ctas: Option<u32>,
        /// The bits of a row do not depend on the other rows or on their number: one consumer adds all of K of an output, in order
        pub batch_invariant: Option<bool>,
    }
}

/// A complete config.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// The roles of the kernel, with their options.
    pub schedule: Schedule,
    /// Rows of C (tokens) in a tile.
    pub tile_m: u32,
    /// Stages of the ring of A.
    pub stages: u32,
    /// The order in which output tiles are computed (rasterization).
    pub raster: builder::Rasterization,
    /// CTAs of a cluster that each compute part of K of a tile: 1, 2 or 4.
    pub split_k: u32,
    /// Do weight loads carry the L2 cache hint `evict_first`?
    pub cache_hints: bool,
    /// CTAs of the grid.
    pub ctas: u32,
}

impl From<&Config> for Choice {
    fn from(c: &Config) -> Self {
        let (raster, group) = match c.raster {
            builder::Rasterization::RowMajor => (Raster::RowMajor, None),
            builder::Rasterization::Grouped(group) => (Raster::Grouped, Some(group)),
            builder::Rasterization::Hilbert => (Raster::Hilbert, None),
        };
        let registers = c.schedule.registers();
        Self {
            schedule: Some(c.schedule.kind()),
            tile_m: Some(c.tile_m),
            tile_n: Some(c.schedule.tile_n()),
            tile_k: Some(c.schedule.tile_k()),
            consumers: Some(c.schedule.consumers()),
            stages: Some(c.stages),
            raster: Some(raster),
            group,
            split_k: Some(c.split_k),
            cache_hints: Some(c.cache_hints),
            load_registers: registers.map(|r| r.load),
            math_registers: registers.map(|r| r.math),
            ctas: Some(c.ctas),
            batch_invariant: None,
        }
    }
}

impl Config {
    /// Returns the stages of a ring of A.
    pub(super) fn a_stages(&self) -> u32 {
        match self.schedule {
            Schedule::InTurn { .. } => self.stages * BLOCKS_PER_PANEL,
            _ => self.stages,
        }
    }

    /// Returns the stages of a ring of weights: enough for the stages of A, and one more where all
    /// consumers share the ring.
    pub(super) fn weight_stages(&self) -> u32 {
        match self.schedule {
            Schedule::InTurn { .. } => self.stages,
            other => (self.stages * other.k_per_step()).div_ceil(PANEL_K) + 1,
        }
    }

    /// Does the GEMM kernel load the codes of A? Otherwise an earlier launch widens A to 16 bits.
    pub(crate) fn loads_coded_a(&self, a_is_coded: bool) -> bool {
        a_is_coded && matches!(self.schedule, Schedule::Warps(_))
    }

    /// Returns how many rounds of weights the producer loads ahead of A, which an earlier launch writes.
    pub(super) fn weight_lead(&self, outputs: Outputs) -> u32 {
        match outputs.needs_widened_a(self) {
            true => self.weight_stages(),
            false => 1,
        }
    }

    /// Returns the mainloop rounds of each CTA: at least the weight lead. With a small K some
    /// rounds load zeros, so that one kernel serves every K.
    pub(crate) fn rounds(&self, k: u32, outputs: Outputs) -> u32 {
        k.div_ceil(PANEL_K * self.schedule.panels_per_round() * self.split_k)
            .max(self.weight_lead(outputs))
    }

    /// Returns the tokens of a tile that each CTA of a split-K cluster stores.
    pub(super) fn tokens_per_cta(&self) -> u32 {
        self.tile_m / self.split_k
    }

    /// Returns the tiles of C.
    pub(super) fn tiles(&self, p: &Shape) -> u64 {
        let columns = p.outputs.weight_rows(self.schedule.tile_n());
        u64::from(p.m.div_ceil(self.tile_m)) * u64::from(p.n.div_ceil(columns))
    }

    /// Returns the tile schedule.
    pub(crate) fn tile_schedule(&self, outputs: Outputs) -> TileSchedule {
        TileSchedule {
            cluster_tile: [self.tile_m, outputs.weight_rows(self.schedule.tile_n())],
            raster: self.raster,
            cluster: Cluster::One,
            dynamic: false,
            batched: false,
        }
    }
}
