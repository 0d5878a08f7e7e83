//! The config of a GEMM: schedule, tile shape, and the sizes derived from them.
//!
//! The caller gives flags ([`Choice`]). `flags` reads a [`Schedule`] from them, and `complete` makes
//! the [`Config`], which holds legal combinations only.

use super::pack::Pack;
use super::problem::{Accumulation, Class, Problem};
use super::tile_scheduler::{Cluster, TileSchedule};
use crate::roles::RegisterBudget;
use std::ops::Range;
use warpline_family::{fields, keywords};
use warpline_ir::builder;

keywords! {
    /// The division of the kernel into roles, as the flag `--schedule` names it.
    pub enum ScheduleKind {
        /// No roles: every warpgroup loads and multiplies
        DoubleBuffer = "double-buffer",
        /// A producer; consumers that share each tile
        Cooperative = "cooperative",
        /// A producer; two consumers with tiles of their own that take turns at the tensor cores
        PingPong = "ping-pong",
        /// Cooperative, with a role that stores the output
        Storer = "storer",
        /// dual-gemm only: a producer; one consumer computes the gate and passes it to the other, and the other computes the up projection
        TwoConsumer = "two-consumer",
    }
}

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
        /// As grouped; a CTA takes its next tile from a work queue
        Dynamic = "dynamic",
    }
}

keywords! {
    /// How CTAs that divide K exchange their accumulators.
    #[derive(Default)]
    pub enum Exchange {
        /// Through the shared memory of a cluster: the first CTA adds all parts
        #[default]
        Cluster = "cluster",
        /// Through global memory: each CTA adds all parts of some columns
        Memory = "memory",
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
        /// Columns of C in a tile of the partial last wave; 0: the same as the other waves
        pub tail_n: Option<u32>,
        /// Elements of K in a stage (a k-tile)
        pub tile_k: Option<u32>,
        /// Warpgroups that multiply
        pub consumers: Option<u32>,
        /// Stages of the ring of A and B
        pub stages: Option<u32>,
        /// CTAs of a cluster that share loads by multicast
        pub cluster: Option<Cluster>,
        /// Order in which output tiles are computed
        pub raster: Option<Raster>,
        /// Tile rows in a group of --raster grouped and dynamic (Triton's GROUP_SIZE_M)
        pub group: Option<u32>,
        /// CTAs that each compute part of K of a tile: 1, 2, 4 or 8, or up to 64 with --exchange memory
        pub split_k: Option<u32>,
        /// How the CTAs of --split-k exchange their accumulators
        pub exchange: Option<Exchange>,
        /// Stream-K: splits all k-tiles evenly across CTAs
        pub stream_k: Option<bool>,
        /// Swap-AB: computes Cᵀ = B · Aᵀ, for small M
        pub swap_ab: Option<bool>,
        /// L2 cache hints: evict_last for A, evict_first for B
        pub cache_hints: Option<bool>,
        /// Register budget of a loading thread (setmaxnreg)
        pub load_registers: Option<u32>,
        /// Register budget of a consumer thread (setmaxnreg)
        pub math_registers: Option<u32>,
        /// Operands that a first kernel copies to rows that TMA can address
        pub pack: Option<Pack>,
        /// CTAs of the grid
        pub ctas: Option<u32>,
        /// The bits of a row do not depend on the other rows or on their number: K is never divided
        pub batch_invariant: Option<bool>,
    }
}

/// The maximum number of CTAs that exchange accumulators through global memory.
pub(super) const MAX_PARTS: u32 = 64;
/// The maximum number of groups of such CTAs, all resident at once.
pub(super) const MAX_GROUPS: u32 = 1 << 16;
/// The maximum number of k-tiles of such a CTA.
pub(super) const MAX_PART_K_TILES: u32 = 1 << 24;

/// The schedule of a kernel: its roles, their share of a tile, and the options of that schedule.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Schedule {
    /// No roles: every warpgroup loads and multiplies.
    DoubleBuffer {
        /// Warpgroups of the CTA.
        consumers: u32,
        /// Whether the kernel computes Cᵀ = B · Aᵀ.
        swap_ab: bool,
        /// The order of the tiles.
        raster: builder::Rasterization,
    },
    /// A producer, and consumers that share each tile.
    Cooperative {
        /// Warpgroups that multiply.
        consumers: u32,
        /// The order of the operands, and the cluster that shares them.
        operands: Operands,
        /// The assignment of tiles to CTAs.
        tiles: TileAssignment,
    },
    /// A producer, and two consumers with tiles of their own that take turns at the tensor cores.
    PingPong {
        /// CTAs that share loads by multicast.
        cluster: Cluster,
        /// The assignment of tiles to CTAs.
        tiles: TileAssignment,
    },
    /// Cooperative, with a role that stores the output.
    Storer {
        /// Warpgroups that multiply.
        consumers: u32,
        /// CTAs that share loads by multicast.
        cluster: Cluster,
        /// The assignment of tiles to CTAs.
        tiles: TileAssignment,
    },
    /// A producer, one consumer for the gate and one for up.
    TwoConsumer {
        /// CTAs that share loads by multicast.
        cluster: Cluster,
        /// The assignment of tiles to CTAs.
        tiles: TileAssignment,
    },
    /// Cooperative; each CTA of a group computes a part of K.
    SplitK {
        /// CTAs of the group.
        parts: u32,
        /// How they exchange their accumulators.
        exchange: Exchange,
        /// Warpgroups that multiply.
        consumers: u32,
        /// Whether the kernel computes Cᵀ = B · Aᵀ.
        swap_ab: bool,
        /// The order of the tiles.
        raster: builder::Rasterization,
    },
    /// Cooperative; all k-tiles are split evenly across CTAs.
    StreamK {
        /// Warpgroups that multiply.
        consumers: u32,
        /// Whether the kernel computes Cᵀ = B · Aᵀ.
        swap_ab: bool,
        /// The order of the tiles.
        raster: builder::Rasterization,
    },
}

/// The order of the operands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operands {
    /// A · Bᵀ; the CTAs of the cluster may share loads.
    Ab(Cluster),
    /// Swap-AB: B · Aᵀ.
    Swapped,
}

/// The assignment of tiles to CTAs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TileAssignment {
    /// Each CTA computes its tiles from its index.
    Static(builder::Rasterization),
    /// Each CTA takes its next tile from a work queue, in raster groups of this many tile rows.
    Dynamic(u32),
}

impl Schedule {
    /// Returns the warpgroups that multiply.
    pub fn consumers(&self) -> u32 {
        match *self {
            Schedule::PingPong { .. } | Schedule::TwoConsumer { .. } => 2,
            Schedule::DoubleBuffer { consumers, .. }
            | Schedule::Cooperative { consumers, .. }
            | Schedule::Storer { consumers, .. }
            | Schedule::SplitK { consumers, .. }
            | Schedule::StreamK { consumers, .. } => consumers,
        }
    }

    /// Returns whether the kernel computes Cᵀ = B · Aᵀ.
    pub fn swap_ab(&self) -> bool {
        match *self {
            Schedule::Cooperative { operands, .. } => operands == Operands::Swapped,
            Schedule::DoubleBuffer { swap_ab, .. }
            | Schedule::SplitK { swap_ab, .. }
            | Schedule::StreamK { swap_ab, .. } => swap_ab,
            _ => false,
        }
    }

    /// Returns the CTAs that share loads by multicast.
    pub fn cluster(&self) -> Cluster {
        match *self {
            Schedule::Cooperative {
                operands: Operands::Ab(cluster),
                ..
            }
            | Schedule::PingPong { cluster, .. }
            | Schedule::Storer { cluster, .. }
            | Schedule::TwoConsumer { cluster, .. } => cluster,
            _ => Cluster::One,
        }
    }

    /// Returns the CTAs that each compute part of K of a tile.
    pub fn split_k(&self) -> u32 {
        match *self {
            Schedule::SplitK { parts, .. } => parts,
            _ => 1,
        }
    }

    /// Returns the CTAs of a cluster, which share loads or exchange accumulators.
    pub(super) fn cluster_ctas(&self) -> u32 {
        match *self {
            Schedule::SplitK {
                parts,
                exchange: Exchange::Cluster,
                ..
            } => parts,
            _ => self.cluster().size(),
        }
    }

    /// Returns whether CTAs that divide K exchange their accumulators through global memory.
    pub(super) fn exchanges_in_memory(&self) -> bool {
        matches!(
            self,
            Schedule::SplitK {
                exchange: Exchange::Memory,
                ..
            }
        )
    }

    /// Returns whether CTAs wait for each other through global memory: all must be resident at once.
    pub(super) fn has_partial_tiles(&self) -> bool {
        self.is_stream_k() || self.exchanges_in_memory()
    }

    /// Returns whether all k-tiles are split evenly across CTAs.
    pub fn is_stream_k(&self) -> bool {
        matches!(self, Schedule::StreamK { .. })
    }

    /// Returns the assignment of tiles to CTAs.
    pub fn tiles(&self) -> TileAssignment {
        match *self {
            Schedule::Cooperative { tiles, .. }
            | Schedule::PingPong { tiles, .. }
            | Schedule::Storer { tiles, .. }
            | Schedule::TwoConsumer { tiles, .. } => tiles,
            Schedule::DoubleBuffer { raster, .. }
            | Schedule::SplitK { raster, .. }
            | Schedule::StreamK { raster, .. } => TileAssignment::Static(raster),
        }
    }

    /// Returns the warpgroups of a CTA.
    pub(super) fn warpgroups(&self) -> u32 {
        self.consumers()
            + match self {
                Schedule::DoubleBuffer { .. } => 0,
                Schedule::Storer { .. } => 2,
                _ => 1,
            }
    }

    /// Returns whether each consumer multiplies all rows of a tile.
    pub(super) fn has_whole_tiles(&self) -> bool {
        matches!(
            self,
            Schedule::PingPong { .. } | Schedule::TwoConsumer { .. }
        )
    }
}

/// A complete config.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// The roles and their share of a tile.
    pub schedule: Schedule,
    /// Rows of C in a tile.
    pub tile_m: u32,
    /// Columns of C in a tile.
    pub tile_n: u32,
    /// Columns of C in a tile of the partial last wave; `None`: all tiles have `tile_n` columns.
    pub tail_n: Option<u32>,
    /// Elements of K in a stage (a k-tile).
    pub tile_k: u32,
    /// Stages of the ring.
    pub stages: u32,
    /// Whether loads carry L2 cache hints: `evict_last` for A, `evict_first` for B.
    pub cache_hints: bool,
    /// Register budgets by role; `None`: no `setmaxnreg`.
    pub registers: Option<RegisterBudget>,
    /// The staging tiles of each consumer's epilogue store.
    pub staging: Staging,
    /// Shared memory of a CTA in bytes, as the builder allocates it.
    pub shared_bytes: u32,
    /// The operands that a first kernel copies. All other fields are for the GEMM of the copies.
    pub pack: Pack,
    /// CTAs of the grid.
    pub ctas: u32,
}

/// The staging tiles of a consumer's epilogue store.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Staging {
    /// Columns of the MMA tile in a staging tile; with swap-AB, these are rows of C.
    pub width: u32,
    /// Number of staging tiles.
    pub stages: u32,
}

/// Columns and stages of the ring that carries the gate between the consumers of two-consumer.
pub(super) const GATE_RING: [u32; 2] = [16, 2];

/// The region of the MMA tile that one consumer accumulates.
pub(super) struct TileRegion {
    /// Rows of the MMA tile.
    pub(super) rows: Range<u32>,
    /// Columns of the MMA tile.
    pub(super) cols: Range<u32>,
    /// The consumer's first row of the output tile; with swap-AB, its first column of C.
    pub(super) first_row: u32,
}

impl TileRegion {
    /// Returns the number of rows and columns.
    pub(super) fn shape(&self) -> [u32; 2] {
        [&self.rows, &self.cols].map(|range| range.end - range.start)
    }
}

impl Config {
    /// Returns whether the kernel computes Cᵀ = B · Aᵀ.
    pub(super) fn swap_ab(&self) -> bool {
        self.schedule.swap_ab()
    }

    /// Returns the CTAs that share loads by multicast.
    pub(super) fn cluster(&self) -> Cluster {
        self.schedule.cluster()
    }

    /// Returns the warpgroups that multiply.
    pub(super) fn consumers(&self) -> u32 {
        self.schedule.consumers()
    }

    /// Returns rows and columns of the MMA tile: those of C, transposed with swap-AB.
    pub(super) fn mma_tile(&self) -> [u32; 2] {
        match self.swap_ab() {
            false => [self.tile_m, self.tile_n],
            true => [self.tile_n, self.tile_m],
        }
    }

    /// Returns the rows of the MMA tile that one consumer multiplies.
    pub(super) fn rows(&self) -> u32 {
        match self.schedule.has_whole_tiles() {
            true => self.mma_tile()[0],
            false => self.mma_tile()[0] / self.consumers(),
        }
    }

    /// Returns the region of the MMA tile that consumer `i` accumulates. Gate and up are side by side;
    /// with swap-AB, gate is above up.
    pub(super) fn region(&self, class: &Class, i: u32) -> TileRegion {
        let (rows, cols) = (self.rows(), self.mma_tile()[1]);
        let (mma_rows, mma_cols) = match (class.b_operands(), self.swap_ab()) {
            (2, true) => (2 * rows, cols),
            (n, _) => (rows, n * cols),
        };
        let (i, cols) = match self.schedule {
            Schedule::PingPong { .. } => (0, 0..mma_cols),
            Schedule::TwoConsumer { .. } => (0, i * cols..(i + 1) * cols),
            _ => (i, 0..mma_cols),
        };
        TileRegion {
            rows: i * mma_rows..(i + 1) * mma_rows,
            cols,
            first_row: i * rows,
        }
    }

    /// Returns the number of row blocks into which gate and up are divided in a slot. The blocks
    /// alternate, so that the rows of one consumer are contiguous.
    pub(super) fn b_blocks(&self) -> u32 {
        match self.swap_ab() {
            true => self.consumers(),
            false => 1,
        }
    }

    /// Returns the accumulator registers of a consumer thread.
    pub(super) fn accumulators(&self, class: &Class) -> u32 {
        let [rows, cols] = self.region(class, 0).shape();
        let registers = rows / 64 * cols / 2;
        match class.accumulation {
            Accumulation::Fast => registers,
            Accumulation::Promoted => 2 * registers,
        }
    }

    /// Returns rows and columns of C in a cluster tile.
    fn cluster_tile(&self) -> [u32; 2] {
        let extent = |tile: u32, is_shared: bool| if is_shared { 2 * tile } else { tile };
        [
            extent(self.tile_m, self.cluster() == Cluster::Rows),
            extent(self.tile_n, self.cluster() == Cluster::Cols),
        ]
    }

    /// Returns the tiles of C along M and N, rounded up to whole clusters.
    pub(super) fn tiles(&self, p: &Problem) -> [u64; 2] {
        let count = |extent: u32, cluster_tile: u32, tile: u32| {
            u64::from(extent.div_ceil(cluster_tile)) * u64::from(cluster_tile / tile)
        };
        let [rows, cols] = self.cluster_tile();
        [count(p.m, rows, self.tile_m), count(p.n, cols, self.tile_n)]
    }

    /// Returns the tile schedule.
    pub(super) fn tile_schedule(&self, batched: bool) -> TileSchedule {
        let (raster, dynamic) = match self.schedule.tiles() {
            TileAssignment::Static(raster) => (raster, false),
            TileAssignment::Dynamic(group) => (builder::Rasterization::Grouped(group), true),
        };
        TileSchedule {
            cluster_tile: self.cluster_tile(),
            raster,
            cluster: self.cluster(),
            dynamic,
            batched,
        }
    }

    /// Returns the workspace bytes of the partial tiles that CTAs exchange (stream-K).
    pub(super) fn partial_bytes(&self, class: &Class) -> u64 {
        let accumulators = class.b_operands() * self.tile_m * self.tile_n;
        u64::from(self.ctas) * u64::from(accumulators * 4)
    }
}
