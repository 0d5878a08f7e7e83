//! What all schedules share: parameters, rings, the load role, masks and the epilogue.

use super::config::Config;
use super::mask::{Blocks, Visibility};
use super::problem::{Class, MAX_LEN};
use super::scores::ScoreRules;
use super::work::{QueryTile, TileScheduler};
use crate::roles::{CONSUMERS, consumer, copy_role};
use warpline_ir::TensorMapDecl;
use warpline_ir::builder::*;

/// Columns of a TMA box: one swizzle span of 16-bit elements.
const PANEL: u32 = 64;
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
    visibility: Visibility,
    maps: [TensorMap; 4],
    lse: Option<Lse>,
}

/// The rings of Q, K and V.
#[derive(Clone, Copy)]
pub(super) struct Rings<T> {
    pub(super) q: Ring<Tile<T>>,
    pub(super) k: Ring<Tile<T>>,
    pub(super) v: Ring<Tile<T>>,
}

/// The output of logarithms.
#[derive(Clone, Copy)]
struct Lse {
    to: Global<f32>,
    queries: Reg<u32>,
    heads: Reg<u32>,
}

impl<T: Half16> Context<T> {
    /// Declares the parameters.
    pub(super) fn declare(k: Builder, class: &Class, c: &Config) -> Self {
        let map = |cols, rows| {
            let mut decl = TensorMapDecl::tiled(T::DTYPE, [cols, rows]);
            decl.tile.extend([1, 1]);
            decl
        };
        let [kv_stages, keys] = [c.stages, c.tile_keys];
        let ring = |name, stages, rows, cols: u32| {
            let cols = cols.next_multiple_of(PANEL);
            k.ring(name, stages, |s| s.tile::<T>(rows, cols))
                .broadcast()
        };

        let visibility = Visibility::declare(k, class.mask);
        let queries = (class.lse || class.bias.is_some())
            .then(|| k.param::<u32>("queries").at_least(1).at_most(MAX_LEN));
        let lse = queries.filter(|_| class.lse).map(|queries| {
            let heads = k.param::<u32>("heads").at_least(1).at_most(1 << 20);
            let len = k.param::<u64>("lse_len");
            Lse {
                to: k.pointer::<f32>("lse").elements(len),
                queries,
                heads,
            }
        });
        let rules = ScoreRules::declare(k, class, queries, visibility);
        Self {
            config: *c,
            class: *class,
            tiles: TileScheduler::declare(k, c),
            rules,
            visibility,
            maps: [
                k.tensor_map("q", map(PANEL, c.tile_rows())),
                k.tensor_map("k", map(PANEL, keys)),
                k.tensor_map("v", map(PANEL, keys)),
                k.tensor_map("o", map(class.out_box(), ROWS)),
            ],
            rings: Rings {
                q: ring("q", c.q_stages, c.tile_rows(), class.cols),
                k: ring("k", kv_stages, keys, class.cols),
                v: ring("v", kv_stages, keys, class.cols_v),
            },
            lse,
        }
    }

    fn blocks(&self, tile: &QueryTile) -> Blocks {
        let last = tile.query + (self.config.tile_rows() - 1);
        let queries = [tile.query, last];
        self.visibility.blocks(queries, self.config.tile_keys)
    }

    /// Declares the role that loads Q, K and V.
    pub(super) fn load(&self, k: Builder) {
        let registers = self.config.registers().map(|registers| registers.load);
        copy_role(k, "load", registers).body(|| {
            elect(|| {
                self.tiles.each_as_producer(|tile| self.load_tile(&tile));
            });
        });
    }

    /// Loads Q, and K and V block by block.
    fn load_tile(&self, tile: &QueryTile) {
        let rings = self.rings;
        let [q, keys, values, _] = self.maps;
        let blocks = self.blocks(tile);
        let fill = |slot: Slot<Tile<T>, Producing>, from: TensorMap, row: Reg<u32>, head| {
            // TMA fills the columns behind a row with zeros.
            for col in (0..slot.cols()).step_by(PANEL as usize) {
                let panel = slot.slice(0..slot.rows(), col..col + PANEL);
                slot.load(from, panel, (col, row, head, tile.batch));
            }
            slot.commit();
        };
        let load = |block: Reg<u32>| {
            let row = block * self.config.tile_keys;
            fill(rings.k.acquire(), keys, row, tile.kv_head);
            fill(rings.v.acquire(), values, row, tile.kv_head);
        };
        fill(rings.q.acquire(), q, tile.query, tile.head);
        load(blocks.last);
        blocks.each(load);
    }

    /// Declares the consumers. `body` computes a tile.
    pub(super) fn consumers(
        &self,
        k: Builder,
        body: impl Fn(&Consumer<'_, T>) -> (Frag, RowVector),
    ) {
        for i in 0..self.config.consumers {
            let name = CONSUMERS[i as usize];
            let outbox = k.outbox::<T>(name, 1, ROWS, self.config.out_cols);
            consumer(k, i, self.config.registers()).body(|| {
                self.tiles.each(|tile| {
                    let first_query = tile.query + i * ROWS;
                    let consumer = Consumer {
                        context: self,
                        first_query,
                        tile,
                        part: i,
                        blocks: self.blocks(&tile),
                    };
                    let (o, log) = body(&consumer);
                    let at = (0u32, first_query, tile.head, tile.batch);
                    outbox.store(&o, self.maps[3], at);
                    self.store_lse(&tile, first_query, &log);
                });
            });
        }
    }

    fn store_lse(&self, tile: &QueryTile, first_query: Reg<u32>, log: &RowVector) {
        let Some(Lse { to, queries, heads }) = self.lse else {
            return;
        };
        let head = tile.batch * heads + tile.head;
        log.each(|row, x| {
            let query = first_query + row;
            if_(query.lt(queries), || {
                to.offset(head.mul_wide(queries)).store(query, x);
            });
        });
    }
}

/// One consumer: 64 queries of a tile.
pub(super) struct Consumer<'a, T> {
    pub(super) context: &'a Context<T>,
    pub(super) part: u32,
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

    /// Returns the base-2 exponent of the head's sink.
    pub(super) fn sink(&self) -> Option<Reg<f32>> {
        self.context.rules.sink(self.tile.head)
    }
}
