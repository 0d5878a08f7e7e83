//! The tile scheduler: which tiles a CTA works on, and in which order (rasterization).

use super::problem::{MOST, MOST_BATCH, MOST_TILES};
use warpline_family::plan::{Buffer, Step};
use warpline_family::words;
use warpline_ir::Extent;
use warpline_ir::build::*;

words! {
    /// CTAs that share what they load, rows × columns of tiles.
    #[derive(Default)]
    pub enum Cluster {
        /// Every CTA alone
        #[default]
        One = "1x1",
        /// Two tiles above each other share B
        Rows = "2x1",
        /// Two tiles side by side share A
        Cols = "1x2",
    }
}

impl Cluster {
    /// CTAs.
    pub(super) fn size(self) -> u32 {
        match self {
            Cluster::One => 1,
            _ => 2,
        }
    }
}

/// How tiles of C are dealt to CTAs.
#[derive(Clone, Copy)]
pub(crate) struct TileSchedule {
    /// Rows and columns of C that a cluster works on together.
    pub(crate) unit: [u32; 2],
    /// The order of the tiles.
    pub(crate) order: Order,
    /// CTAs that share what they load.
    pub(crate) cluster: Cluster,
    /// Does each CTA take the next tile from a queue when it is done with one?
    pub(crate) dynamic: bool,
    /// Are there several GEMMs?
    pub(crate) batched: bool,
}

impl TileSchedule {
    /// Binds the launch arguments, for `m` × `n` elements of C in each GEMM of the batch.
    pub(crate) fn bind_args(&self, step: Step, [m, n]: [u32; 2], batch: Option<u32>) -> Step {
        let [rows, cols] = self.unit;
        let (m_tiles, n_tiles) = (m.div_ceil(rows), n.div_ceil(cols));
        let [group, last] = self.order.divisors(m_tiles, n_tiles);
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

/// The tiles of all GEMMs of a batch, as the roles of a CTA visit them.
#[derive(Clone, Copy)]
pub(crate) struct TileScheduler {
    /// Cluster tiles along M and N.
    sides: [Reg<u32>; 2],
    tiles: Tiles,
    count: Reg<u32>,
    /// GEMMs of the batch.
    pub(super) batch: Option<Reg<u32>>,
    cluster: Cluster,
    batched: bool,
    queue: Option<WorkQueue>,
}

/// A CTA's tile: its coordinates in tiles, and its GEMM of the batch.
#[derive(Clone, Copy)]
pub(crate) struct TileCoord {
    pub(crate) m: Reg<u32>,
    pub(crate) n: Reg<u32>,
    pub(crate) batch: Option<Reg<u32>>,
}

impl From<TileAt> for TileCoord {
    fn from(at: TileAt) -> Self {
        Self {
            m: at.m,
            n: at.n,
            batch: None,
        }
    }
}

impl TileScheduler {
    /// Declares the parameters.
    pub(crate) fn declare(k: Builder, schedule: TileSchedule) -> Self {
        // Counted by the launch: divisions would hold up the first copy.
        let side = |name: &str, unit: u32| {
            let side = k.param::<u32>(name).at_least(1);
            side.at_most(MOST.div_ceil(unit))
        };
        let units = schedule.unit;
        let [m_tiles, n_tiles] = [side("m_tiles", units[0]), side("n_tiles", units[1])];
        let divisors = ["raster_group", "last_group"].map(|name| k.divisor(name));
        let tiles = schedule.order.tiles(m_tiles, n_tiles).by(divisors);
        let of_one = tiles.count();
        let batch = schedule.batched.then(|| {
            let batch = k.param::<u32>("batch").at_least(1);
            batch.at_most(MOST_BATCH)
        });
        let each = extent(m_tiles) * n_tiles;
        let (count, all) = match batch {
            Some(batch) => (of_one * batch, each * batch),
            None => (of_one, each),
        };
        k.limit(all, MOST_TILES);
        Self {
            sides: [m_tiles, n_tiles],
            tiles,
            count,
            batch,
            cluster: schedule.cluster,
            batched: schedule.batched,
            queue: schedule.dynamic.then(|| k.work_queue("queue", 2)),
        }
    }

    /// Tiles of one GEMM, as bounds count them.
    pub(super) fn extent(self) -> Extent {
        extent(self.sides[0]) * self.sides[1]
    }

    /// The tiles in their order, one for each cluster.
    pub(crate) fn tiles(self) -> Tiles {
        self.tiles
    }

    /// This CTA's tile of a number below the count.
    #[track_caller]
    fn coord(self, i: Reg<u32>) -> TileCoord {
        let (i, batch) = match self.batched {
            true => {
                let batch = i / self.tiles.count();
                (i - batch * self.tiles.count(), Some(batch))
            }
            false => (i, None),
        };
        let at = self.tiles.at(i);
        let mine = |side: Reg<u32>, shared: bool| match shared {
            true => side * 2 + cluster_rank(),
            false => side,
        };
        TileCoord {
            m: mine(at.m, self.cluster == Cluster::Rows),
            n: mine(at.n, self.cluster == Cluster::Cols),
            batch,
        }
    }

    /// The numbers of this CTA's tiles where they are known beforehand.
    #[track_caller]
    fn numbers(self, clusters: bool) -> Range<u32> {
        match clusters {
            true => range(cluster_id(), self.count).by(grid_clusters()),
            false => range(cta_id(), self.count).by(grid_ctas()),
        }
    }

    /// Is the first tile of a CTA known before the CTA barrier?
    pub(crate) fn first_is_static(self) -> bool {
        self.queue.is_none() && self.cluster == Cluster::One
    }

    /// Runs `body` for the first of this CTA's tiles, if it has one.
    #[track_caller]
    pub(crate) fn first(self, body: impl FnOnce(TileCoord)) {
        let i = cta_id();
        if_(i.lt(self.count), || body(self.coord(i)));
    }

    /// Runs `body` for each tile, in one thread of the producer, which takes the tiles from the queue.
    #[track_caller]
    pub(crate) fn each_as_producer(self, body: impl FnOnce(TileCoord)) {
        match self.queue {
            Some(queue) => queue.fetch_each(self.count, |i| body(self.coord(i))),
            None => self.each(body),
        }
    }

    /// Runs `body` for each tile, in any other role.
    #[track_caller]
    pub(crate) fn each(self, body: impl FnOnce(TileCoord)) {
        match self.queue {
            Some(queue) => queue.each(self.count, |i| body(self.coord(i))),
            None => self
                .numbers(self.cluster != Cluster::One)
                .each(|i| body(self.coord(i))),
        }
    }

    /// Runs `body` for every second tile, from tile `who` on, and `skip` for the others.
    #[track_caller]
    pub(crate) fn each_second(self, who: u32, skip: impl FnOnce(), body: impl FnOnce(TileCoord)) {
        let turn = Var::new(0u32);
        self.each(|coord| {
            let now = turn.get();
            if_else(now.eq(who), || body(coord), skip);
            turn.set(now ^ 1u32);
        });
    }

    /// Runs `body` for each tile of a cluster whose CTAs split K.
    #[track_caller]
    pub(crate) fn each_of_cluster(self, body: impl FnOnce(TileCoord)) {
        self.numbers(true).each(|i| body(self.coord(i)));
    }
}
