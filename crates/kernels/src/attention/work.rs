//! The tiles of queries: their order, and how CTAs take them.
//!
//! Heads form *sections* whose K and V fit in the L2 together. Within a section the tiles with the most
//! keys come first, and all heads of a tile are neighbors. So the last tiles, which end at different
//! times, are short.

use super::config::{Config, TileAssignment};
use super::mask::{Blocks, MaskParams};
use super::problem::{Class, MAX_LEN, Problem};
use super::sequence::{INFO_WORDS, Sequence, Sequences, TileInfo};
use warpline_family::plan::{Buffer, LaunchStep};
use warpline_ir::builder::*;

/// The bytes of K and V that stay in the L2.
const SECTION_BYTES: u64 = 32 << 20;

/// The maximum number of parts of the keys.
pub(super) const MAX_SPLITS: u32 = 256;

/// The maximum number of tiles of a launch.
pub(super) const MAX_TILES: u32 = (1 << 31) - 1;

/// A tile of queries of one head, or of all heads that share a head of K and V.
#[derive(Clone, Copy)]
pub(super) struct QueryTile {
    /// The first query of the batch or sequence.
    pub(super) query: Reg<u32>,
    /// The (first) head of Q and O.
    pub(super) head: Reg<u32>,
    /// The head of K and V.
    pub(super) kv_head: Reg<u32>,
    pub(super) batch: Reg<u32>,
    /// The sequence, if extents differ.
    pub(super) sequence: Option<Sequence>,
    /// The part of the keys.
    pub(super) split: Option<Split>,
    /// The blocks of keys, if they are known.
    pub(super) blocks: Option<Blocks>,
}

/// A part of the keys.
#[derive(Clone, Copy)]
pub(super) struct Split {
    pub(super) index: Reg<u32>,
    pub(super) of: Splits,
}

/// The parts of the keys of each tile.
#[derive(Clone, Copy)]
pub(super) struct Splits {
    pub(super) count: Reg<u32>,
    pub(super) divisor: FastDivisor,
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
    queue: Option<Queue>,
    splits: Option<Splits>,
}

/// The work queue; if extents differ, its items have a payload.
#[derive(Clone, Copy)]
enum Queue {
    Items(WorkQueue),
    Tiles(WorkQueue<INFO_WORDS>, Sequences),
}

impl Splits {
    /// Declares the parameters.
    pub(super) fn declare(k: Builder) -> Self {
        Self {
            count: k.param::<u32>("splits").at_least(1).at_most(MAX_SPLITS),
            divisor: k.divisor("splits_divisor"),
        }
    }

    /// Returns the tile and the part of item `i`: the parts of a tile are neighbors.
    pub(super) fn part(splits: Option<Self>, i: Reg<u32>) -> (Reg<u32>, Option<Split>) {
        let Some(of) = splits else { return (i, None) };
        let tile = of.divisor.divide(i);
        let index = i - tile * of.count;
        (tile, Some(Split { index, of }))
    }
}

impl TileScheduler {
    /// Declares the parameters.
    pub(super) fn declare(
        k: Builder,
        class: &Class,
        c: &Config,
        mask: MaskParams,
        queries: Option<Reg<u32>>,
    ) -> Self {
        let rows = c.tile_queries();
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
            queue: match (class.sequences, c.tiles) {
                (Some(sequences), _) => Some(Queue::Tiles(
                    k.work_queue_with_payload("queue", 2),
                    Sequences::declare(
                        k,
                        sequences,
                        (class.mask, mask),
                        queries,
                        [rows, c.tile_keys],
                    ),
                )),
                (None, TileAssignment::Queue) => Some(Queue::Items(k.work_queue("queue", 2))),
                (None, _) => None,
            },
            splits: c.is_split().then(|| Splits::declare(k)),
        }
    }

    /// Binds the parameters.
    pub(super) fn bind(step: LaunchStep, p: &Problem, c: &Config) -> LaunchStep {
        let group = p.heads / p.kv_heads() / c.tile_heads;
        // The sequences of packed queries follow each other along the tiles of a head.
        let batches = if p.packed_queries { 1 } else { p.batch };
        let all = batches * p.kv_heads();
        let row_bytes = 2 * u64::from(p.dim) * p.dtype.dtype().bytes() as u64;
        let [_, keys] = p.typical_extents();
        let bytes = (u64::from(keys) * row_bytes).max(1);
        let fitting = (SECTION_BYTES / bytes).clamp(1, 1 << 20) as u32;
        let section = (1 << fitting.ilog2()).min(all);
        let tiles = c.head_tiles(p);
        let step = step
            .scalar("q_tiles", tiles)
            .scalar("tiles", all * group * tiles * c.splits)
            .scalar("all_kv_heads", all)
            .scalar("section_kv_heads", section)
            .divisor("section_tiles", section * group * tiles)
            .divisor("group", group)
            .divisor("kv_heads", p.kv_heads())
            .scalar("group_size", group)
            .scalar("batch_kv_heads", p.kv_heads());
        let step = match c.is_split() {
            true => step
                .scalar("splits", c.splits)
                .divisor("splits_divisor", c.splits),
            false => step,
        };
        match c.tiles {
            TileAssignment::Queue => step.pointer("queue", Buffer::Workspace),
            _ => step,
        }
    }

    /// Runs `body` for each tile of this CTA in the thread that loads.
    pub(super) fn each_as_producer(self, body: impl FnOnce(QueryTile)) {
        match self.queue {
            Some(Queue::Items(queue)) => queue.fetch_each(self.count, |i| body(self.tile(i))),
            Some(Queue::Tiles(queue, sequences)) => {
                sequences.wait();
                let payload = |i| {
                    let item = self.item(i);
                    let query = item.tile * self.rows;
                    sequences.words(|| self.entry(&item), (query, item.batch), item.split)
                };
                queue.fetch_each_with_payload(self.count, payload, |i, words| {
                    body(self.tile_of_info(i, sequences.read(words)))
                });
            }
            None => self.each(body),
        }
    }

    /// Runs `body` for each tile of this CTA in another role.
    pub(super) fn each(self, body: impl FnOnce(QueryTile)) {
        match (self.queue, self.assignment) {
            (Some(Queue::Items(queue)), _) => queue.each(self.count, |i| body(self.tile(i))),
            (Some(Queue::Tiles(queue, sequences)), _) => {
                sequences.wait();
                queue.each_with_payload(self.count, |i, words| {
                    body(self.tile_of_info(i, sequences.read(words)))
                });
            }
            (None, TileAssignment::One) => body(self.tile(cta_id())),
            (None, _) => {
                let own = range(cta_id(), self.count).step_by(grid_ctas());
                own.each(|i| body(self.tile(i)));
            }
        }
    }

    /// Returns tile `i` of the order.
    fn tile(self, i: Reg<u32>) -> QueryTile {
        let item = self.item(i);
        QueryTile::new(&item, item.tile * self.rows, None)
    }

    /// Returns tile `i` of the order, whose entry in the table is known.
    fn tile_of_info(self, i: Reg<u32>, info: TileInfo) -> QueryTile {
        QueryTile {
            blocks: Some(info.blocks),
            ..QueryTile::new(&self.item(i), info.query, Some(info.sequence))
        }
    }

    /// Returns the entry of an item in the table of tiles.
    fn entry(self, item: &Item) -> Reg<u32> {
        match item.split {
            None => item.tile,
            Some(split) => item.tile * split.of.count + split.index,
        }
    }

    /// Returns item `i` of the order.
    fn item(self, i: Reg<u32>) -> Item {
        let (i, split) = Splits::part(self.splits, i);
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
        Item {
            tile: self.tiles - 1 - turn.min(self.tiles - 1),
            head: kv_head * self.group_size + (head - pair * self.group_size),
            kv_head,
            batch,
            split,
        }
    }
}

impl QueryTile {
    fn new(item: &Item, query: Reg<u32>, sequence: Option<Sequence>) -> Self {
        Self {
            query,
            head: item.head,
            kv_head: item.kv_head,
            batch: sequence.map_or(item.batch, |sequence| sequence.batch),
            sequence,
            split: item.split,
            blocks: None,
        }
    }
}

/// An item of the order: a tile of a head, counted from the first query.
struct Item {
    tile: Reg<u32>,
    head: Reg<u32>,
    kv_head: Reg<u32>,
    batch: Reg<u32>,
    split: Option<Split>,
}
