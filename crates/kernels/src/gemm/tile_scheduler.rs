//! The tile scheduler: the assignment of tiles to CTAs and their order (rasterization).

use super::problem::{MAX_BATCH, MAX_EXTENT, MAX_TILES};
use warpline_family::keywords;
use warpline_family::plan::{Buffer, LaunchStep};
use warpline_ir::Extent;
use warpline_ir::builder::*;

keywords! {
    /// Shape of a cluster that shares loads, in tiles along M × N.
    #[derive(Default)]
    pub enum Cluster {
        /// No sharing
        #[default]
        One = "1x1",
        /// Two tiles along M share B
        Rows = "2x1",
        /// Two tiles along N share A
        Cols = "1x2",
    }
}

impl Cluster {
    /// Returns the number of CTAs.
    pub(super) fn size(self) -> u32 {
        match self {
            Cluster::One => 1,
            _ => 2,
        }
    }
}

/// The compiled-in part of the tile scheduler.
#[derive(Clone, Copy)]
pub(crate) struct TileSchedule {
    /// Rows and columns of C in a cluster tile.
    pub(crate) cluster_tile: [u32; 2],
    /// The order of the tiles.
    pub(crate) raster: Rasterization,
    /// CTAs that share loads by multicast.
    pub(crate) cluster: Cluster,
    /// Whether CTAs take their tiles from a work queue.
    pub(crate) dynamic: bool,
    /// Whether the problem has a batch dimension.
    pub(crate) batched: bool,
}

impl TileSchedule {
    /// Binds the launch arguments, for `m` × `n` elements of C in each GEMM of the batch.
    pub(crate) fn bind_args(
        &self,
        step: LaunchStep,
        [m, n]: [u32; 2],
        batch: Option<u32>,
    ) -> LaunchStep {
        let [rows, cols] = self.cluster_tile;
        let (m_tiles, n_tiles) = (m.div_ceil(rows), n.div_ceil(cols));
        let [group, last] = self.raster.divisors(m_tiles, n_tiles);
        let mut step = step
            .scalar("m_tiles", m_tiles)
            .scalar("n_tiles", n_tiles)
            .divisor("raster_group", group)
            .divisor("last_group", last);
        if let Some(batch) = batch {
            step = step.scalar("batch", batch);
        }
        match self.dynamic {
            true => step.pointer("queue", Buffer::Workspace),
            false => step,
        }
    }
}

/// Iterates over the tiles of all GEMMs of a batch, in every role of a CTA.
#[derive(Clone, Copy)]
pub(crate) struct TileScheduler {
    /// Cluster tiles along M and N.
    cluster_tiles: [Reg<u32>; 2],
    tiles: TileGrid,
    count: Reg<u32>,
    /// Number of GEMMs of the batch.
    pub(super) batch: Option<Reg<u32>>,
    cluster: Cluster,
    batched: bool,
    queue: Option<WorkQueue>,
}

/// A CTA's tile: its tile coordinates and its index in the batch.
#[derive(Clone, Copy)]
pub(crate) struct TileCoord {
    pub(crate) m: Reg<u32>,
    pub(crate) n: Reg<u32>,
    pub(crate) batch: Option<Reg<u32>>,
}

impl From<TileIndex> for TileCoord {
    fn from(index: TileIndex) -> Self {
        Self {
            m: index.m,
            n: index.n,
            batch: None,
        }
    }
}

impl TileScheduler {
    /// Declares the parameters.
    pub(crate) fn declare(k: Builder, schedule: TileSchedule) -> Self {
        // The host computes the tile counts: device divisions would delay the first load.
        let tile_count = |name: &str, extent: u32| {
            let count = k.param::<u32>(name).at_least(1);
            count.at_most(MAX_EXTENT.div_ceil(extent))
        };
        let [rows, cols] = schedule.cluster_tile;
        let [m_tiles, n_tiles] = [tile_count("m_tiles", rows), tile_count("n_tiles", cols)];
        let divisors = ["raster_group", "last_group"].map(|name| k.divisor(name));
        let tiles = schedule
            .raster
            .tiles(m_tiles, n_tiles)
            .with_divisors(divisors);
        let tiles_per_gemm = tiles.count();
        let batch = schedule.batched.then(|| {
            let batch = k.param::<u32>("batch").at_least(1);
            batch.at_most(MAX_BATCH)
        });
        let gemm_extent = extent(m_tiles) * n_tiles;
        let (count, total_extent) = match batch {
            Some(batch) => (tiles_per_gemm * batch, gemm_extent * batch),
            None => (tiles_per_gemm, gemm_extent),
        };
        k.limit(total_extent, MAX_TILES);
        Self {
            cluster_tiles: [m_tiles, n_tiles],
            tiles,
            count,
            batch,
            cluster: schedule.cluster,
            batched: schedule.batched,
            queue: schedule.dynamic.then(|| k.work_queue("queue", 2)),
        }
    }

    /// Returns the number of tiles of one GEMM, for declared bounds.
    pub(super) fn extent(self) -> Extent {
        extent(self.cluster_tiles[0]) * self.cluster_tiles[1]
    }

    /// Returns the cluster tiles of one GEMM in raster order.
    pub(crate) fn tiles(self) -> TileGrid {
        self.tiles
    }

    /// Returns this CTA's tile of cluster tile `i`.
    #[track_caller]
    fn coord(self, i: Reg<u32>) -> TileCoord {
        let (i, batch) = match self.batched {
            true => {
                let batch = i / self.tiles.count();
                (i - batch * self.tiles.count(), Some(batch))
            }
            false => (i, None),
        };
        let cluster_tile = self.tiles.at(i);
        let cta_coord = |coord: Reg<u32>, is_pair: bool| match is_pair {
            true => coord * 2 + cluster_rank(),
            false => coord,
        };
        TileCoord {
            m: cta_coord(cluster_tile.m, self.cluster == Cluster::Rows),
            n: cta_coord(cluster_tile.n, self.cluster == Cluster::Cols),
            batch,
        }
    }

    /// Returns the indices of this CTA's statically assigned tiles.
    #[track_caller]
    fn static_indices(self, by_cluster: bool) -> Range<u32> {
        match by_cluster {
            true => range(cluster_id(), self.count).step_by(grid_clusters()),
            false => range(cta_id(), self.count).step_by(grid_ctas()),
        }
    }

    /// Returns whether the producer may load the first tile before the prologue barrier: a work queue and
    /// a cluster need the barrier first.
    pub(crate) fn first_tile_is_static(self) -> bool {
        self.queue.is_none() && self.cluster == Cluster::One
    }

    /// Runs `body` for this CTA's first tile, if it has one.
    #[track_caller]
    pub(crate) fn first(self, body: impl FnOnce(TileCoord)) {
        self.only(cta_id(), body);
    }

    /// Runs `body` for each tile in one producer thread; that thread fetches tiles from the work queue.
    #[track_caller]
    pub(crate) fn each_as_producer(self, body: impl FnOnce(TileCoord)) {
        match self.queue {
            Some(queue) => queue.fetch_each(self.count, |i| body(self.coord(i))),
            None => self.each(body),
        }
    }

    /// Runs `body` for each tile in any other role.
    #[track_caller]
    pub(crate) fn each(self, body: impl FnOnce(TileCoord)) {
        match self.queue {
            Some(queue) => queue.each(self.count, |i| body(self.coord(i))),
            None => self
                .static_indices(self.cluster != Cluster::One)
                .each(|i| body(self.coord(i))),
        }
    }

    /// Runs `body` for every second tile, starting at tile `parity`, and `skip` for the others.
    #[track_caller]
    pub(crate) fn each_second(
        self,
        parity: u32,
        skip: impl FnOnce(),
        body: impl FnOnce(TileCoord),
    ) {
        let tile_parity = Var::new(0u32);
        self.each(|coord| {
            let current = tile_parity.get();
            if_else(current.eq(parity), || body(coord), skip);
            tile_parity.set(current ^ 1u32);
        });
    }

    /// Runs `body` for tile `i`, if it exists.
    #[track_caller]
    pub(crate) fn only(self, i: Reg<u32>, body: impl FnOnce(TileCoord)) {
        if_(i.lt(self.count), || body(self.coord(i)));
    }

    /// Runs `body` for each tile of a cluster whose CTAs split K: all its CTAs get the same tile.
    #[track_caller]
    pub(crate) fn each_of_cluster(self, body: impl FnOnce(TileCoord)) {
        self.static_indices(true).each(|i| body(self.coord(i)));
    }
}
