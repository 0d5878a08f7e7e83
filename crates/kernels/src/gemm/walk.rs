//! Which tiles a CTA works on, and in which sequence.

use super::config::{Cluster, Config, Order};
use super::problem::{Class, MOST, MOST_BATCH};
use warpline_ir::Extent;
use warpline_ir::build::*;

/// The most tiles of a launch, with room for a step of the grid.
pub(super) const MOST_TILES: u64 = (1 << 31) - 1;

/// The tiles of all products of a batch, as the roles of a CTA walk them.
#[derive(Clone, Copy)]
pub(crate) struct Walk {
    /// Tiles by rows and columns, one for each cluster.
    sides: [Reg<u32>; 2],
    tiles: Tiles,
    count: Reg<u32>,
    /// Products of the batch.
    pub(super) batch: Option<Reg<u32>>,
    cluster: Cluster,
    batched: bool,
    queue: Option<WorkQueue>,
}

/// A CTA's tile: its row and column in tiles, and whose product it is.
#[derive(Clone, Copy)]
pub(crate) struct Seat {
    pub(crate) m: Reg<u32>,
    pub(crate) n: Reg<u32>,
    pub(crate) batch: Option<Reg<u32>>,
}

impl Walk {
    pub(crate) fn declare(k: Builder, class: &Class, c: &Config) -> Self {
        // Counted by the launch: divisions would hold up the first copy.
        let side = |name: &str, unit: u32| {
            let side = k.param::<u32>(name).at_least(1);
            side.at_most(MOST.div_ceil(unit))
        };
        let units = c.unit();
        let [tall, wide] = [side("tall", units[0]), side("wide", units[1])];
        let divisors = ["band", "last"].map(|name| k.divisor(name));
        let tiles = c.order().tiles(tall, wide).by(divisors);
        let of_one = tiles.count();
        let batch = (class.batched).then(|| {
            let batch = k.param::<u32>("batch").at_least(1);
            batch.at_most(MOST_BATCH)
        });
        let each = extent(tall) * wide;
        let (count, all) = match batch {
            Some(batch) => (of_one * batch, each * batch),
            None => (of_one, each),
        };
        k.limit(all, MOST_TILES);
        Self {
            sides: [tall, wide],
            tiles,
            count,
            batch,
            cluster: c.cluster,
            batched: class.batched,
            queue: (c.order == Order::Dynamic).then(|| k.work_queue("queue", 2)),
        }
    }

    /// Tiles of one product, as bounds count them.
    pub(super) fn extent(self) -> Extent {
        extent(self.sides[0]) * self.sides[1]
    }

    /// The tiles in their order, one for each cluster.
    pub(crate) fn tiles(self) -> Tiles {
        self.tiles
    }

    /// This CTA's tile of a number below the count.
    #[track_caller]
    fn seat(self, i: Reg<u32>) -> Seat {
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
        Seat {
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

    /// Does a CTA know its first tile before it has met others?
    pub(crate) fn knows_first(self) -> bool {
        self.queue.is_none() && self.cluster == Cluster::One
    }

    /// Runs `body` for the first of this CTA's tiles, if it has one.
    #[track_caller]
    pub(crate) fn first(self, body: impl FnOnce(Seat)) {
        let i = cta_id();
        if_(i.lt(self.count), || body(self.seat(i)));
    }

    /// As the role that loads, by one thread: runs `body` for each tile.
    #[track_caller]
    pub(crate) fn fetch(self, body: impl FnOnce(Seat)) {
        match self.queue {
            Some(queue) => queue.fetch_each(self.count, |i| body(self.seat(i))),
            None => self.each(body),
        }
    }

    /// As any other role: runs `body` for each tile.
    #[track_caller]
    pub(crate) fn each(self, body: impl FnOnce(Seat)) {
        match self.queue {
            Some(queue) => queue.each(self.count, |i| body(self.seat(i))),
            None => self
                .numbers(self.cluster != Cluster::One)
                .each(|i| body(self.seat(i))),
        }
    }

    /// Of two roles, those that `who` takes in turn: `skip` runs for the other's.
    #[track_caller]
    pub(crate) fn dealt(self, who: u32, skip: impl FnOnce(), body: impl FnOnce(Seat)) {
        let turn = Var::new(0u32);
        self.each(|seat| {
            let now = turn.get();
            if_else(now.eq(who), || body(seat), skip);
            turn.set(now ^ 1u32);
        });
    }

    /// The tiles of clusters whose CTAs split the sums of one tile.
    #[track_caller]
    pub(crate) fn split(self, body: impl FnOnce(Seat)) {
        self.numbers(true).each(|i| body(self.seat(i)));
    }
}
