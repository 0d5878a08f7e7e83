//! What the steps of the ladder are made of.

use super::Config;
use crate::probe::{boxes, side};
use half::bf16;
use warpline_ir::build::*;
use warpline_ir::{Bf16x2, DType};

/// Rows of a tile of C.
pub(super) const ROWS: u32 = 128;
/// What a stage holds of K: rows of 128 bytes.
pub(super) const DEPTH: u32 = 64;
/// Two warpgroups that share a tile, each with the first of its 64 rows.
pub(super) const HALVES: [(&str, u32); 2] = [("upper", 0), ("lower", 64)];

/// The address of a tensor; a [`Map`] is the other way to one.
pub(super) type Pointer = Global<bf16>;

/// A stage: 64 columns of A's rows, and of B's.
pub(super) type Stage = (Tile<bf16>, Tile<bf16>);

/// How a kernel reaches a tensor.
pub(super) trait Reach {
    /// Declares it; of a map, boxes are so many rows and columns.
    fn declare(k: Builder, name: &str, rows: u32, cols: u32) -> Self;
}

impl Reach for Pointer {
    fn declare(k: Builder, name: &str, _: u32, _: u32) -> Self {
        k.pointer(name)
    }
}

impl Reach for Map {
    fn declare(k: Builder, name: &str, rows: u32, cols: u32) -> Self {
        k.tensor_map(name, boxes(DType::Bf16, cols, rows))
    }
}

/// The product of a launch: `From` is how A and B are reached, `To` how C is.
pub(super) struct Line<From, To> {
    m: Reg<u32>,
    n: Reg<u32>,
    k: Reg<u32>,
    /// Stages that K fills.
    pub(super) depth: Reg<u32>,
    a: From,
    b: From,
    c: To,
    config: Config,
}

impl<From: Reach, To: Reach> Line<From, To> {
    pub(super) fn declare(builder: Builder, config: Config) -> Self {
        let [m, n, k] = ["m", "n", "k"].map(|name| side(builder, name));
        Self {
            m,
            n,
            k,
            depth: k.div_ceil(DEPTH),
            a: From::declare(builder, "a", ROWS, DEPTH),
            b: From::declare(builder, "b", config.width, DEPTH),
            c: To::declare(builder, "c", ROWS, config.parcel()),
            config,
        }
    }

    /// The tiles of C.
    #[track_caller]
    pub(super) fn tiles(&self, order: Order) -> Tiles {
        let cols = self.n.div_ceil(self.config.width);
        order.tiles(self.m.div_ceil(ROWS), cols)
    }

    /// The ring that brings A and B.
    #[track_caller]
    pub(super) fn ring(&self, k: Builder) -> Ring<Stage> {
        let Config { width, stages, .. } = self.config;
        k.ring("ab", stages, |s| {
            (s.tile(ROWS, DEPTH), s.tile(width, DEPTH))
        })
    }

    /// Adds the products of every stage of a tile, of A's rows from `top` on.
    #[track_caller]
    pub(super) fn multiply(&self, ab: Ring<Stage>, top: u32, rows: u32) -> Acc {
        let acc = Acc::new(rows, self.config.width);
        steps(self.depth).each(|_| {
            let slot = ab.wait();
            acc.mma(&slot.0.slice(top..top + rows, 0..DEPTH), &slot.1);
            slot.release_after(&acc);
        });
        acc
    }
}

impl<To> Line<Pointer, To> {
    /// Copies this thread's share of a stage of A, 16 bytes at a time; what lies outside is zero.
    #[track_caller]
    pub(super) fn copy_a(&self, to: TileRef<bf16>, tile: TileAt, step: Reg<u32>) {
        self.copy(to, self.a, tile.m * ROWS, self.m, step);
    }

    /// The same of B.
    #[track_caller]
    pub(super) fn copy_b(&self, to: TileRef<bf16>, tile: TileAt, step: Reg<u32>) {
        self.copy(to, self.b, tile.n * self.config.width, self.n, step);
    }

    #[track_caller]
    fn copy(
        &self,
        to: TileRef<bf16>,
        from: Pointer,
        first: Reg<u32>,
        rows: Reg<u32>,
        step: Reg<u32>,
    ) {
        let threads = 2 * role_threads();
        for chunk in (0..to.rows() * DEPTH / 8).step_by(threads as usize) {
            let chunk = thread_id() + chunk;
            let (row, col) = (chunk / (DEPTH / 8), chunk % (DEPTH / 8) * 8);
            let (y, x) = (first + row, step * DEPTH + col);
            let valid = select(y.lt(rows) & x.lt(self.k), 16u32, 0u32);
            let at = y.mul_wide(self.k) + x.cast::<u64>();
            to.copy_some_from(row, col, from.address(at), 16, valid);
        }
    }
}

impl<To> Line<Map, To> {
    /// Has the TMA bring a stage of A.
    #[track_caller]
    pub(super) fn load_a(&self, slot: &Slot<Stage, Filling>, tile: TileAt, step: Reg<u32>) {
        slot.load(self.a, slot.0, [step * DEPTH, tile.m * ROWS]);
    }

    /// The same of B.
    #[track_caller]
    pub(super) fn load_b(&self, slot: &Slot<Stage, Filling>, tile: TileAt, step: Reg<u32>) {
        slot.load(self.b, slot.1, [step * DEPTH, tile.n * self.config.width]);
    }

    /// Brings a stage.
    #[track_caller]
    pub(super) fn load(&self, ab: Ring<Stage>, tile: TileAt, step: Reg<u32>) {
        let slot = ab.acquire();
        self.load_a(&slot, tile, step);
        self.load_b(&slot, tile, step);
        slot.commit();
    }

    /// Brings every stage of a tile.
    #[track_caller]
    pub(super) fn load_all(&self, ab: Ring<Stage>, tile: TileAt) {
        steps(self.depth).each(|step| self.load(ab, tile, step));
    }
}

impl<From> Line<From, Pointer> {
    /// Stores sums from registers to the rows of a tile from `top` on, two
    /// numbers at a time. N is even, so that a pair lies inside of C or outside.
    #[track_caller]
    pub(super) fn store(&self, sums: &Frag, tile: TileAt, top: u32) {
        let (row, col) = (tile.m * ROWS + top, tile.n * self.config.width);
        sums.each_pair(|at, [x, y]| {
            let (row, col) = (row + at.row, col + at.col);
            let to = self.c.offset(row.mul_wide(self.n));
            let pair = Reg::<Bf16x2>::round(x, y);
            if_(row.lt(self.m) & col.lt(self.n), || to.store_as(col, [pair]));
        });
    }
}

impl<From> Line<From, Map> {
    /// Sends sums to a tile through shared memory.
    #[track_caller]
    pub(super) fn send(&self, sums: &Frag, outbox: Outbox<bf16>, tile: TileAt) {
        let at = [tile.n * self.config.width, tile.m * ROWS];
        outbox.send(sums, self.c, at);
    }
}
