//! What all schedules share: parameters, rings, the load role, masks and the epilogue.

use super::config::Config;
use super::problem::{Class, MAX_LEN};
use super::work::{QueryTile, TileScheduler};
use crate::roles::{consumer, copy_role};
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
    pub(super) scale: Reg<f32>,
    pub(super) rings: Rings<T>,
    tiles: TileScheduler,
    keys: Reg<u32>,
    diagonal: Option<[Reg<u32>; 2]>,
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

/// The blocks of keys of a tile, from the last one down.
#[derive(Clone, Copy)]
pub(super) struct Blocks {
    pub(super) count: Reg<u32>,
    /// Blocks after the first one that have a masked score.
    pub(super) masked: Reg<u32>,
    /// Blocks without a masked score, which come last.
    pub(super) full: Reg<u32>,
}

impl<T: Half16> Context<T> {
    /// Declares the parameters.
    pub(super) fn declare(k: Builder, class: &Class, c: &Config) -> Self {
        let length = |name| k.param::<u32>(name).at_most(MAX_LEN);
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

        let lse = class.lse.then(|| {
            let (queries, heads) = (length("queries").at_least(1), k.param::<u32>("heads"));
            let heads = heads.at_least(1).at_most(1 << 20);
            let len = k.param::<u64>("lse_len");
            Lse {
                to: k.pointer::<f32>("lse").elements(len),
                queries,
                heads,
            }
        });
        Self {
            config: *c,
            class: *class,
            scale: k.param::<f32>("scale"),
            tiles: TileScheduler::declare(k, c),
            keys: length("keys"),
            diagonal: class.causal.then(|| ["ahead", "lead"].map(length)),
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

    /// Returns the number of keys that a query sees: the first ones.
    fn visible_keys(&self, query: Reg<u32>) -> Reg<u32> {
        match self.diagonal {
            None => self.keys,
            Some([ahead, lead]) => (query + 1 + ahead).max(lead).min(lead + self.keys) - lead,
        }
    }

    /// Returns the blocks of a tile. All roles count them alike, so that the checker sees equal loops. A
    /// tile without a visible key has one block, which is masked entirely.
    fn blocks(&self, tile: &QueryTile) -> Blocks {
        let last = tile.query + (self.config.tile_rows() - 1);
        let count = self.visible_keys(last).div_ceil(self.config.tile_keys);
        let count = count.max(1);
        let rest = count - 1;
        let full = (self.visible_keys(tile.query) / self.config.tile_keys).min(rest);
        Blocks {
            count,
            masked: rest - full,
            full,
        }
    }

    /// Declares the role that loads Q, K and V.
    pub(super) fn load(&self, k: Builder) {
        let registers = self.config.registers().load;
        copy_role(k, "load", Some(registers)).body(|| {
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
        let block = |i| {
            let row = (blocks.count - 1 - i) * self.config.tile_keys;
            fill(rings.k.acquire(), keys, row, tile.kv_head);
            fill(rings.v.acquire(), values, row, tile.kv_head);
        };
        fill(rings.q.acquire(), q, tile.query, tile.head);
        block(0u32.reg());
        steps(blocks.masked).each(|i| block(i + 1));
        steps(blocks.full).each(|i| block(i + 1 + blocks.masked));
    }

    /// Declares the consumers. `body` computes a tile.
    pub(super) fn consumers(
        &self,
        k: Builder,
        body: impl Fn(&Consumer<'_, T>) -> (Frag, RowVector),
    ) {
        for i in 0..self.config.consumers {
            let name = crate::roles::CONSUMERS[i as usize];
            let outbox = k.outbox::<T>(name, 1, ROWS, self.config.out_cols);
            let registers = Some(self.config.registers());
            consumer(k, i, registers).body(|| {
                self.tiles.each(|tile| {
                    let first_query = tile.query + i * ROWS;
                    let consumer = Consumer {
                        context: self,
                        first_query,
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
    first_query: Reg<u32>,
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

    /// Computes the scores of block `i`, counted from the last one down. Masks them if `is_masked`.
    #[track_caller]
    pub(super) fn mask(&self, scores: Frag, i: Reg<u32>) -> Frag {
        let first_key = (self.blocks.count - 1 - i) * self.context.config.tile_keys;
        let is_visible = |at: FragCoord| {
            let visible = self.context.visible_keys(self.first_query + at.row);
            (first_key + at.col).lt(visible)
        };
        scores.mask(is_visible, f32::NEG_INFINITY)
    }
}
