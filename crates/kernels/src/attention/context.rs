//! What all schedules share: parameters, rings, the load role, and the loop over tiles.

use super::config::Config;
use super::mask::{Blocks, MaskParams, Visibility};
use super::output::{Output, TileRow};
use super::problem::{Class, MAX_LEN};
use super::scores::ScoreRules;
use super::sequence::{KeyLayout, PageTable};
use super::spans::{Span, Spans};
use super::work::{QueryTile, TileScheduler};
use crate::roles::{CONSUMERS, consumer, copy_role};
use std::ops::Range;
use warpline_ir::TensorMapDecl;
use warpline_ir::builder::*;

/// Columns of a TMA box: one swizzle span of 16-bit elements.
const PANEL: u32 = 64;
/// The rows after which the swizzle of shared memory repeats.
pub(super) const SWIZZLE_ROWS: u32 = 8;
/// Queries of a consumer.
pub(super) const ROWS: u32 = 64;

/// An element type of Q, K, V and O.
pub(super) trait Half16: OutboxElement + FragOperand<Order = Natural> + Half {}
impl<T: OutboxElement + FragOperand<Order = Natural> + Half> Half16 for T {}

/// The parameters of a kernel.
pub(super) struct Context<T> {
    pub(super) config: Config,
    pub(super) class: Class,
    pub(super) rings: Rings<T>,
    tiles: TileScheduler,
    pub(super) rules: ScoreRules,
    mask: MaskParams,
    q: TensorMap,
    source: Source,
    output: Output<T>,
}

/// The rings of Q, K and V.
#[derive(Clone, Copy)]
pub(super) struct Rings<T> {
    pub(super) q: Ring<Tile<T>>,
    pub(super) k: Ring<Tile<T>>,
    pub(super) v: Ring<Tile<T>>,
}

/// Where K and V are loaded from.
#[derive(Clone, Copy)]
enum Source {
    /// Batches of the same extents: TMA fills rows behind the last key with zeros.
    Tensors([TensorMap; 2]),
    /// The rows of a sequence.
    Spans([Spans; 2], Option<PageTable>),
}

impl<T: Half16> Context<T> {
    /// Declares the parameters.
    pub(super) fn declare(k: Builder, class: &Class, c: &Config) -> Self {
        let map = |tile: &[u32]| {
            let mut decl = TensorMapDecl::tiled(T::DTYPE, tile);
            decl.tile.resize(4, 1);
            decl
        };
        let [kv_stages, keys] = [c.stages, c.tile_keys];
        let ring = |name, stages, rows, cols: u32| {
            let cols = cols.next_multiple_of(PANEL);
            k.ring(name, stages, |s| s.tile::<T>(rows, cols))
                .broadcast()
        };

        let mask = MaskParams::declare(k, class.mask, class.sequences);
        let queries =
            needs_queries(class, c).then(|| k.param::<u32>("queries").at_least(1).at_most(MAX_LEN));
        let key_rows = |name| k.tensor_map(name, map(&[PANEL, c.copy_keys]));
        Self {
            config: *c,
            class: *class,
            tiles: TileScheduler::declare(k, class, c, mask, queries),
            rules: ScoreRules::declare(k, class, c, queries, mask.keys),
            mask,
            q: k.tensor_map("q", map(&c.q_box(PANEL))),
            source: match class.sequences.filter(|class| class.key_lens.is_some()) {
                None => Source::Tensors(["k", "v"].map(key_rows)),
                Some(sequences) => Source::Spans(
                    ["k", "v"].map(|name| Spans::declare(k, name, key_rows(name))),
                    (sequences.keys == KeyLayout::Paged).then(|| PageTable::declare(k)),
                ),
            },
            output: Output::declare(k, class, c, queries),
            rings: Rings {
                q: ring("q", c.q_stages, c.q_rows(), class.cols),
                k: ring("k", kv_stages, keys, class.cols),
                v: ring("v", kv_stages, keys, class.cols_v),
            },
        }
    }

    /// Returns the keys that the queries of a tile see, and the blocks of these keys.
    fn visible_blocks(&self, tile: &QueryTile) -> (Visibility, Blocks) {
        let last = tile.query + (self.config.tile_queries() - 1);
        let (queries, keys) = ([tile.query, last], self.config.tile_keys);
        let (sequence, split) = (tile.sequence.as_ref(), tile.split);
        match tile.blocks {
            None => self.mask.visible_blocks(sequence, queries, keys, split),
            Some(blocks) => {
                let visibility = self.mask.of_tile(sequence, queries, keys, split);
                (visibility, blocks)
            }
        }
    }

    /// Declares the role that loads Q, K and V.
    pub(super) fn load(&self, k: Builder) {
        let registers = self.config.registers().map(|registers| registers.load);
        copy_role(k, "load", registers).body(|| {
            elect(|| {
                if self.config.is_split() {
                    // The sum of the parts waits for the end of this grid.
                    launch_dependents();
                }
                self.tiles.each_as_producer(|tile| self.load_tile(&tile));
            });
        });
    }

    /// Loads Q, and K and V block by block.
    fn load_tile(&self, tile: &QueryTile) {
        let rings = self.rings;
        let (_, blocks) = self.visible_blocks(tile);
        // Without a register budget there is room to find pages before a slot is free, once for K and V.
        let finds_ahead = self.config.registers().is_none();
        let load = |block: Reg<u32>| {
            let key = block * self.config.tile_keys;
            let ahead = finds_ahead.then(|| self.key_spans(tile, key).collect::<Vec<_>>());
            for (which, ring) in [rings.k, rings.v].into_iter().enumerate() {
                let slot = ring.acquire();
                match &ahead {
                    Some(spans) => self.load_keys(which, slot, tile, key, spans.iter().copied()),
                    None => self.load_keys(which, slot, tile, key, self.key_spans(tile, key)),
                }
            }
        };
        let is_packed = (self.class.sequences).is_some_and(|class| class.packed_queries);
        let [row, batch] = match tile.sequence.filter(|_| is_packed) {
            Some(sequence) => [sequence.query_start + tile.query, 0u32.reg()],
            None => [tile.query, tile.batch],
        };
        let head = self.first_head(tile);
        let slot = rings.q.acquire();
        each_panel(&slot, 0..slot.rows(), |col, panel| {
            match self.config.tile_heads {
                1 => slot.load(self.q, panel, (col, row, head, batch)),
                // Rows of the tile: the heads of a query are neighbors.
                _ => slot.load(self.q, panel, (col, head, row, batch)),
            }
        });
        slot.commit();
        load(blocks.last);
        blocks.each(load);
    }

    /// Finds, one by one, the row that each copy of a block of keys starts at, and the span that has it; none
    /// if all batches have the same extents.
    fn key_spans(&self, tile: &QueryTile, key: Reg<u32>) -> impl Iterator<Item = (Reg<u32>, Span)> {
        let table = match self.source {
            Source::Tensors(_) => None,
            Source::Spans(_, table) => Some(table),
        };
        let copies = (0..self.config.tile_keys).step_by(self.config.copy_keys.max(1) as usize);
        let starts = table.into_iter().flat_map(move |table| {
            let copies = copies.clone();
            copies.map(move |first| (table, first))
        });
        starts.filter_map(move |(table, first)| span_of_keys(tile, table, key + first))
    }

    /// Loads a block of K (0) or V (1).
    fn load_keys(
        &self,
        which: usize,
        slot: Slot<Tile<T>, Producing>,
        tile: &QueryTile,
        key: Reg<u32>,
        spans: impl Iterator<Item = (Reg<u32>, Span)>,
    ) {
        match self.source {
            Source::Tensors(maps) => each_panel(&slot, 0..slot.rows(), |col, panel| {
                slot.load(maps[which], panel, (col, key, tile.kv_head, tile.batch));
            }),
            Source::Spans(maps, _) => {
                let rows = self.config.copy_keys;
                for (first, (row, span)) in (0..).step_by(rows as usize).zip(spans) {
                    each_panel(&slot, first..first + rows, |col, panel| {
                        slot.load(maps[which].map(), panel, maps[which].at(&span, col, row));
                    });
                }
            }
        }
        slot.commit();
    }

    /// Returns the first head of Q in a tile.
    fn first_head(&self, tile: &QueryTile) -> Reg<u32> {
        match self.config.tile_heads {
            1 => tile.head,
            heads => tile.kv_head * heads,
        }
    }

    /// Declares the consumers. `body` computes a tile.
    pub(super) fn consumers(
        &self,
        k: Builder,
        body: impl Fn(&Consumer<'_, T>) -> (Frag, RowVector),
    ) {
        for i in 0..self.config.consumers {
            let name = CONSUMERS[i as usize];
            let outbox = self.output.outbox(k, name, &self.config);
            consumer(k, i, self.config.registers()).body(|| {
                self.tiles.each(|tile| {
                    let (visibility, blocks) = self.visible_blocks(&tile);
                    let consumer = Consumer {
                        context: self,
                        first_query: tile.query + i * ROWS,
                        tile,
                        part: i,
                        visibility,
                        blocks,
                    };
                    let (o, log) = body(&consumer);
                    let row = |i| consumer.row(i);
                    let first = consumer.first_query;
                    self.output.store(&tile, first, row, outbox, (&o, &log));
                });
            });
        }
    }
}

/// Returns whether a kernel needs the number of queries.
pub(super) fn needs_queries(class: &Class, c: &Config) -> bool {
    let is_batched = class
        .sequences
        .is_some_and(|sequences| !sequences.packed_queries);
    class.lse || class.bias.is_some() || c.stores_rows() || is_batched
}

/// Returns the span that has a key of the tile's sequence, and the key's row in it.
fn span_of_keys(
    tile: &QueryTile,
    table: Option<PageTable>,
    key: Reg<u32>,
) -> Option<(Reg<u32>, Span)> {
    let (sequence, head) = (tile.sequence?, tile.kv_head);
    let Some(table) = table else {
        let start = [sequence.key_start, head, sequence.batch];
        let rows = sequence.keys;
        return Some((key, Span { start, rows }));
    };
    let [page, row, rows] = table.find(&sequence, key);
    let start = [0u32.reg(), head, page];
    Some((row, Span { start, rows }))
}

/// Calls `load` with the first column and the view of each swizzle span of some rows. TMA fills the columns
/// behind a row with zeros.
fn each_panel<T: Half16>(
    slot: &Slot<Tile<T>, Producing>,
    rows: Range<u32>,
    load: impl Fn(u32, TileRef<T>),
) {
    for col in (0..slot.cols()).step_by(PANEL as usize) {
        load(col, slot.slice(rows.clone(), col..col + PANEL));
    }
}

/// One consumer: 64 queries of a tile.
pub(super) struct Consumer<'a, T> {
    pub(super) context: &'a Context<T>,
    pub(super) part: u32,
    pub(super) visibility: Visibility,
    pub(super) blocks: Blocks,
    pub(super) first_query: Reg<u32>,
    pub(super) tile: QueryTile,
}

impl<T: Half16> Consumer<'_, T> {
    /// Returns the consumer's rows of Q.
    pub(super) fn queries(&self, slot: &Slot<Tile<T>, Consuming>) -> TileRef<T> {
        let first = self.part * ROWS;
        slot.slice(first..first + ROWS, 0..self.context.class.cols)
    }

    /// Returns the keys of a slot, without columns that are zero in all rows.
    pub(super) fn keys(&self, slot: &Slot<Tile<T>, Consuming>) -> TileRef<T> {
        slot.slice(0..slot.rows(), 0..self.context.class.cols)
    }

    /// Returns the values of a slot.
    pub(super) fn values(&self, slot: &Slot<Tile<T>, Consuming>) -> Transposed<T> {
        slot.slice(0..slot.rows(), 0..self.context.class.cols_v).t()
    }

    /// Returns the query and the head of a row.
    pub(super) fn row(&self, row: Reg<u32>) -> TileRow {
        match self.context.config.tile_heads {
            1 => TileRow {
                query: self.first_query + row,
                head: self.tile.head,
            },
            heads => TileRow {
                query: self.first_query + row / heads,
                head: self.context.first_head(&self.tile) + row % heads,
            },
        }
    }

    /// Returns the base-2 exponent of each row's sink. Parts of the keys have none: the sum of the parts
    /// adds it.
    pub(super) fn sink(&self) -> Option<RowVector> {
        if self.tile.split.is_some() {
            return None;
        }
        let sink = self.context.rules.sink()?;
        Some(match self.context.config.tile_heads {
            1 => RowVector::splat(ROWS, sink(self.tile.head)),
            _ => RowVector::from_fn(ROWS, |row| sink(self.row(row).head)),
        })
    }
}
