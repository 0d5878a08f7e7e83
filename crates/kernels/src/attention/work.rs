//! The tiles of queries: their order, and how CTAs take them.
//!
//! Heads form *sections* whose K and V fit in the L2 together. Within a section the tiles with the most
//! keys come first, and all heads of a tile are neighbors. So the last tiles, which end at different
//! times, are short.

use super::config::{Config, TileAssignment};
use super::problem::{MAX_LEN, Problem};
use warpline_family::plan::{Buffer, LaunchStep};
use warpline_ir::builder::*;

/// The bytes of K and V that stay in the L2.
const SECTION_BYTES: u64 = 32 << 20;

/// The maximum number of tiles of a launch.
pub(super) const MAX_TILES: u32 = (1 << 31) - 1;

/// A tile of queries of one head.
#[derive(Clone, Copy)]
pub(super) struct QueryTile {
    /// The first query.
    pub(super) query: Reg<u32>,
    /// The head of Q and O.
    pub(super) head: Reg<u32>,
    /// The head of K and V.
    pub(super) kv_head: Reg<u32>,
    pub(super) batch: Reg<u32>,
}

/// The parameters of the order, and the work queue.
#[derive(Clone, Copy)]
pub(super) struct TileScheduler {
    /// Queries of a tile.
    rows: u32,
    /// Tiles of a head.
    tiles: Reg<u32>,
    all_kv_heads: Reg<u32>,
    section_kv_heads: Reg<u32>,
    section_tiles: FastDivisor,
    group: FastDivisor,
    kv_heads: FastDivisor,
    group_size: Reg<u32>,
    batch_kv_heads: Reg<u32>,
    /// All tiles.
    count: Reg<u32>,
    assignment: TileAssignment,
    queue: Option<WorkQueue>,
}

impl TileScheduler {
    /// Declares the parameters.
    pub(super) fn declare(k: Builder, c: &Config) -> Self {
        let rows = c.tile_rows();
        let counts = |name| k.param::<u32>(name).at_least(1).at_most(1 << 20);
        let tiles = k.param::<u32>("q_tiles").at_least(1);
        let count = k.param::<u32>("tiles").at_least(1);
        Self {
            rows,
            tiles: tiles.at_most(MAX_LEN.div_ceil(rows)),
            all_kv_heads: counts("all_kv_heads"),
            section_kv_heads: counts("section_kv_heads"),
            section_tiles: k.divisor("section_tiles"),
            group: k.divisor("group"),
            kv_heads: k.divisor("kv_heads"),
            group_size: counts("group_size"),
            batch_kv_heads: counts("batch_kv_heads"),
            count: count.at_most(MAX_TILES),
            assignment: c.tiles,
            queue: (c.tiles == TileAssignment::Queue).then(|| k.work_queue("queue", 2)),
        }
    }

    /// Binds the parameters.
    pub(super) fn bind(step: LaunchStep, p: &Problem, c: &Config) -> LaunchStep {
        let group = p.heads / p.kv_heads();
        let all = p.batch * p.kv_heads();
        let row_bytes = 2 * u64::from(p.dim) * p.dtype.dtype().bytes() as u64;
        let bytes = (u64::from(p.keys) * row_bytes).max(1);
        let fitting = (SECTION_BYTES / bytes).clamp(1, 1 << 20) as u32;
        let section = (1 << fitting.ilog2()).min(all);
        let tiles = p.queries.div_ceil(c.tile_rows());
        let step = step
            .scalar("q_tiles", tiles)
            .scalar("tiles", all * group * tiles)
            .scalar("all_kv_heads", all)
            .scalar("section_kv_heads", section)
            .divisor("section_tiles", section * group * tiles)
            .divisor("group", group)
            .divisor("kv_heads", p.kv_heads())
            .scalar("group_size", group)
            .scalar("batch_kv_heads", p.kv_heads());
        match c.tiles {
            TileAssignment::Queue => step.pointer("queue", Buffer::Workspace),
            _ => step,
        }
    }

    /// Runs `body` for each tile of this CTA in the thread that loads.
    pub(super) fn each_as_producer(self, body: impl FnOnce(QueryTile)) {
        match self.queue {
            Some(queue) => queue.fetch_each(self.count, |i| body(self.tile(i))),
            None => self.each(body),
        }
    }

    /// Runs `body` for each tile of this CTA in another role.
    pub(super) fn each(self, body: impl FnOnce(QueryTile)) {
        match (self.queue, self.assignment) {
            (Some(queue), _) => queue.each(self.count, |i| body(self.tile(i))),
            (None, TileAssignment::One) => body(self.tile(cta_id())),
            (None, _) => {
                let own = range(cta_id(), self.count).step_by(grid_ctas());
                own.each(|i| body(self.tile(i)));
            }
        }
    }

    /// Returns tile `i` of the order.
    fn tile(self, i: Reg<u32>) -> QueryTile {
        let section = self.section_tiles.divide(i);
        let first = section * self.section_kv_heads;
        let rest = i - section * (self.section_kv_heads * self.group_size * self.tiles);
        // The last section may have fewer heads.
        let heads = (self.all_kv_heads - first).min(self.section_kv_heads) * self.group_size;
        let turn = rest / heads;
        let head = rest - turn * heads;
        let pair = self.group.divide(head);
        let kv = first + pair;
        let batch = self.kv_heads.divide(kv);
        let kv_head = kv - batch * self.batch_kv_heads;
        QueryTile {
            query: (self.tiles - 1 - turn.min(self.tiles - 1)) * self.rows,
            head: kv_head * self.group_size + (head - pair * self.group_size),
            kv_head,
            batch,
        }
    }
}
