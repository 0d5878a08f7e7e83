//! How a GEMM is solved: its schedule, its tiles, and what follows from them.
//!
//! A person states flags ([`Choice`]); `flags` reads a [`Schedule`] from them, and `complete`
//! makes the [`Config`], which holds legal combinations only.

use super::problem::{Class, Problem, Sums};
use super::tile_scheduler::{Cluster, TileSchedule};
use crate::roles::Registers;
use std::ops::Range;
use warpline_family::{fields, words};
use warpline_ir::build;

words! {
    /// The structure of the program.
    pub enum Form {
        /// Every warpgroup loads and computes
        DoubleBuffer = "double-buffer",
        /// One loader, and consumers that share each tile
        Cooperative = "cooperative",
        /// One loader, and two consumers that take tiles and the tensor cores in turn
        PingPong = "ping-pong",
        /// As cooperative, with a role that stores
        Storer = "storer",
        /// One loader, one consumer for the gate and one for the rest, which it is handed through shared memory
        TwoConsumer = "two-consumer",
    }
}

words! {
    /// In which sequence tiles are worked on.
    #[derive(Default)]
    pub enum Order {
        /// Row by row
        RowMajor = "row-major",
        /// Bands of rows, column by column inside a band
        #[default]
        Grouped = "grouped",
        /// A curve that keeps neighbours near in both directions
        Hilbert = "hilbert",
        /// Bands of rows, each CTA taking the next tile when it is done with one
        Dynamic = "dynamic",
    }
}

fields! {
    /// What the caller fixes of the config.
    #[derive(Default)]
    pub struct Choice {
        /// The structure of the program
        pub form: Option<Form>,
        /// Rows of C in a tile
        pub tile_m: Option<u32>,
        /// Columns of C in a tile
        pub tile_n: Option<u32>,
        /// Columns of C in a tile of the last columns, behind whole waves of tiles
        pub tail_n: Option<u32>,
        /// Elements of K in a stage
        pub tile_k: Option<u32>,
        /// Warpgroups that compute
        pub consumers: Option<u32>,
        /// Stages of the ring
        pub stages: Option<u32>,
        /// CTAs that share what they load
        pub cluster: Option<Cluster>,
        /// In which sequence tiles are worked on
        pub order: Option<Order>,
        /// Rows of tiles in a band of the orders grouped and dynamic
        pub group: Option<u32>,
        /// CTAs of a cluster that split the sums of a tile
        pub split_k: Option<u32>,
        /// Deals steps of K to CTAs, not tiles
        pub stream_k: Option<bool>,
        /// Multiplies B by A: the rows of B are those of the tensor cores' tile
        pub swap: Option<bool>,
        /// Has the L2 keep A and forget B first
        pub hints: Option<bool>,
        /// Registers of a loading thread
        pub load_registers: Option<u32>,
        /// Registers of a computing thread
        pub math_registers: Option<u32>,
        /// CTAs of the grid
        pub ctas: Option<u32>,
    }
}

/// The roles of a kernel and how they share its tiles, with the options of each schedule.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Schedule {
    /// Every warpgroup loads and multiplies.
    DoubleBuffer {
        /// Warpgroups.
        consumers: u32,
        /// Are the rows of B those of the tensor cores' tile?
        swap_ab: bool,
        /// The order of the tiles.
        raster: build::Order,
    },
    /// A producer, and consumers that share each tile.
    Cooperative {
        /// Warpgroups that multiply.
        consumers: u32,
        /// What the tensor cores multiply, and what CTAs share.
        operands: Operands,
        /// How tiles come to CTAs.
        tiles: Tiles,
    },
    /// A producer, and two consumers that take tiles and the tensor cores in turn.
    PingPong {
        /// CTAs that share what they load.
        cluster: Cluster,
        /// How tiles come to CTAs.
        tiles: Tiles,
    },
    /// As cooperative, with a role that stores.
    Storer {
        /// Warpgroups that multiply.
        consumers: u32,
        /// CTAs that share what they load.
        cluster: Cluster,
        /// How tiles come to CTAs.
        tiles: Tiles,
    },
    /// A producer, one consumer for the gate and one for up.
    TwoConsumer {
        /// CTAs that share what they load.
        cluster: Cluster,
        /// How tiles come to CTAs.
        tiles: Tiles,
    },
    /// As cooperative; two CTAs of a cluster split K.
    SplitK {
        /// Warpgroups that multiply.
        consumers: u32,
        /// Are the rows of B those of the tensor cores' tile?
        swap_ab: bool,
        /// The order of the tiles.
        raster: build::Order,
    },
    /// As cooperative; all k-tiles are split evenly across CTAs.
    StreamK {
        /// Warpgroups that multiply.
        consumers: u32,
        /// Are the rows of B those of the tensor cores' tile?
        swap_ab: bool,
        /// The order of the tiles.
        raster: build::Order,
    },
}

/// What the tensor cores multiply: A and B, which the CTAs of a cluster may share, or B and A.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operands {
    /// The rows of A are those of the tensor cores' tile.
    Ab(Cluster),
    /// The rows of B are.
    Swapped,
}

/// How tiles come to CTAs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Tiles {
    /// Every CTA knows its tiles beforehand.
    Static(build::Order),
    /// A CTA takes the next tile from a queue when it is done with one, in bands of so many rows.
    Dynamic(u32),
}

impl Schedule {
    /// Warpgroups that multiply.
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

    /// Are the rows of B those of the tensor cores' tile?
    pub fn swap_ab(&self) -> bool {
        match *self {
            Schedule::Cooperative { operands, .. } => operands == Operands::Swapped,
            Schedule::DoubleBuffer { swap_ab, .. }
            | Schedule::SplitK { swap_ab, .. }
            | Schedule::StreamK { swap_ab, .. } => swap_ab,
            _ => false,
        }
    }

    /// CTAs that share what they load.
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

    /// CTAs that split the sums of a tile.
    pub fn split_k(&self) -> u32 {
        match self {
            Schedule::SplitK { .. } => 2,
            _ => 1,
        }
    }

    /// Are k-tiles dealt to CTAs, and not tiles?
    pub fn is_stream_k(&self) -> bool {
        matches!(self, Schedule::StreamK { .. })
    }

    /// How tiles come to CTAs.
    pub fn tiles(&self) -> Tiles {
        match *self {
            Schedule::Cooperative { tiles, .. }
            | Schedule::PingPong { tiles, .. }
            | Schedule::Storer { tiles, .. }
            | Schedule::TwoConsumer { tiles, .. } => tiles,
            Schedule::DoubleBuffer { raster, .. }
            | Schedule::SplitK { raster, .. }
            | Schedule::StreamK { raster, .. } => Tiles::Static(raster),
        }
    }

    /// Warpgroups of a CTA.
    pub(super) fn warpgroups(&self) -> u32 {
        self.consumers()
            + match self {
                Schedule::DoubleBuffer { .. } => 0,
                Schedule::Storer { .. } => 2,
                _ => 1,
            }
    }

    /// Has each consumer all rows of a tile?
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
    /// The roles, and how they share the tiles.
    pub schedule: Schedule,
    /// Rows of C in a tile.
    pub tile_m: u32,
    /// Columns of C in a tile.
    pub tile_n: u32,
    /// Columns of C in a tile behind whole waves of tiles; none where all tiles are alike.
    pub tail_n: Option<u32>,
    /// Elements of K in a stage.
    pub tile_k: u32,
    /// Stages of the ring.
    pub stages: u32,
    /// Does the L2 keep A and forget B first?
    pub hints: bool,
    /// Registers of a thread by role; none where none are moved.
    pub registers: Option<Registers>,
    /// The staging tiles of a consumer, through which C is stored.
    pub staging: Staging,
    /// Bytes of shared memory of a CTA, as the builder allocates them.
    pub shared_bytes: u32,
    /// CTAs of the grid.
    pub ctas: u32,
}

/// The staging tiles of a consumer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Staging {
    /// Columns of the tensor cores' tile, or rows where A and B are swapped.
    pub width: u32,
    /// How many there are.
    pub stages: u32,
}

/// How a gate is handed from consumer to consumer: columns of a part, and stages.
pub(super) const HANDED: [u32; 2] = [16, 2];

/// What a consumer has of a tile.
pub(super) struct Area {
    /// Its rows of the tensor cores' tile.
    pub(super) rows: Range<u32>,
    /// Its columns of it.
    pub(super) cols: Range<u32>,
    /// Its first row of C, of the tile of C as the tensor cores see it.
    pub(super) first: u32,
}

impl Area {
    /// Rows and columns.
    pub(super) fn sides(&self) -> [u32; 2] {
        [&self.rows, &self.cols].map(|side| side.end - side.start)
    }
}

impl Config {
    /// Are the rows of B those of the tensor cores' tile?
    pub(super) fn swap_ab(&self) -> bool {
        self.schedule.swap_ab()
    }

    /// CTAs that share what they load.
    pub(super) fn cluster(&self) -> Cluster {
        self.schedule.cluster()
    }

    /// Warpgroups that multiply.
    pub(super) fn consumers(&self) -> u32 {
        self.schedule.consumers()
    }

    /// Rows of the tensor cores' tile, and its columns.
    pub(super) fn sides(&self) -> [u32; 2] {
        match self.swap_ab() {
            false => [self.tile_m, self.tile_n],
            true => [self.tile_n, self.tile_m],
        }
    }

    /// Rows of the tensor cores' tile that one consumer works on.
    pub(super) fn rows(&self) -> u32 {
        match self.schedule.has_whole_tiles() {
            true => self.sides()[0],
            false => self.sides()[0] / self.consumers(),
        }
    }

    /// What consumer `i` has of the tensor cores' tile, where the sums of two
    /// factors lie side by side, or above each other where A and B are swapped.
    pub(super) fn area(&self, class: &Class, i: u32) -> Area {
        let (rows, cols) = (self.rows(), self.sides()[1]);
        let (tall, wide) = match (class.factors(), self.swap_ab()) {
            (2, true) => (2 * rows, cols),
            (n, _) => (rows, n * cols),
        };
        let (i, cols) = match self.schedule {
            Schedule::PingPong { .. } => (0, 0..wide),
            Schedule::TwoConsumer { .. } => (0, i * cols..(i + 1) * cols),
            _ => (i, 0..wide),
        };
        Area {
            rows: i * tall..(i + 1) * tall,
            cols,
            first: i * rows,
        }
    }

    /// Parts in which the rows of each factor lie, those of gate and up in turn:
    /// what a consumer multiplies lies together.
    pub(super) fn blocks(&self) -> u32 {
        match self.swap_ab() {
            true => self.consumers(),
            false => 1,
        }
    }

    /// Accumulators of a thread.
    pub(super) fn accumulators(&self, class: &Class) -> u32 {
        let [rows, cols] = self.area(class, 0).sides();
        let sums = rows / 64 * cols / 2;
        match class.sums {
            Sums::Fast => sums,
            Sums::Promoted => 2 * sums,
        }
    }

    /// Rows and columns of C that a cluster works on together.
    fn unit(&self) -> [u32; 2] {
        let twice = |tile: u32, shared: bool| if shared { 2 * tile } else { tile };
        [
            twice(self.tile_m, self.cluster() == Cluster::Rows),
            twice(self.tile_n, self.cluster() == Cluster::Cols),
        ]
    }

    /// Tiles of C, by rows and columns, in whole clusters.
    pub(super) fn tiles(&self, p: &Problem) -> [u64; 2] {
        let over = |extent: u32, unit: u32, tile: u32| {
            u64::from(extent.div_ceil(unit)) * u64::from(unit / tile)
        };
        let [tall, wide] = self.unit();
        [over(p.m, tall, self.tile_m), over(p.n, wide, self.tile_n)]
    }

    /// How the tiles are dealt to CTAs.
    pub(super) fn tile_schedule(&self, batched: bool) -> TileSchedule {
        let (order, dynamic) = match self.schedule.tiles() {
            Tiles::Static(order) => (order, false),
            Tiles::Dynamic(group) => (build::Order::Grouped(group), true),
        };
        TileSchedule {
            unit: self.unit(),
            order,
            cluster: self.cluster(),
            dynamic,
            batched,
        }
    }

    /// Bytes of the sums that CTAs leave each other.
    pub(super) fn partial_bytes(&self, class: &Class) -> u64 {
        let sums = class.factors() * self.tile_m * self.tile_n;
        u64::from(self.ctas) * u64::from(sums * 4)
    }
}
