//! Common parts of the ladder: parameters, loads, the mainloop and stores.

use super::Config;
use crate::probe::{box_map, extent_param};
use half::bf16;
use warpline_ir::builder::*;
use warpline_ir::{Bf16x2, DType};

/// Rows of a tile of C.
pub(super) const TILE_M: u32 = 128;
/// Columns of K in a stage: rows of 128 bytes.
pub(super) const TILE_K: u32 = 64;
/// Two warpgroups that share a tile, each with the first of its 64 rows.
pub(super) const CONSUMERS: [(&str, u32); 2] = [("consumer0", 0), ("consumer1", 64)];

/// Access to a tensor by its address, not by a [`TensorMap`].
pub(super) type GlobalPointer = Global<bf16>;

/// A stage: a k-tile of A and one of B.
pub(super) type Stage = (Tile<bf16>, Tile<bf16>);

/// How a kernel accesses a tensor.
pub(super) trait TensorAccess {
    /// Declares the tensor; `rows` and `cols` are the box of a tensor map.
    fn declare(k: Builder, name: &str, rows: u32, cols: u32) -> Self;
}

impl TensorAccess for GlobalPointer {
    fn declare(k: Builder, name: &str, _: u32, _: u32) -> Self {
        k.pointer(name)
    }
}

impl TensorAccess for TensorMap {
    fn declare(k: Builder, name: &str, rows: u32, cols: u32) -> Self {
        k.tensor_map(name, box_map(DType::Bf16, cols, rows))
    }
}

/// The GEMM of a launch. `Input` is the access to A and B, `Output` the access to C.
pub(super) struct LadderGemm<Input, Output> {
    m: Reg<u32>,
    n: Reg<u32>,
    k: Reg<u32>,
    /// The number of k-tiles.
    pub(super) k_tiles: Reg<u32>,
    a: Input,
    b: Input,
    c: Output,
    config: Config,
}

impl<Input: TensorAccess, Output: TensorAccess> LadderGemm<Input, Output> {
    pub(super) fn declare(builder: Builder, config: Config) -> Self {
        let [m, n, k] = ["m", "n", "k"].map(|name| extent_param(builder, name));
        Self {
            m,
            n,
            k,
            k_tiles: k.div_ceil(TILE_K),
            a: Input::declare(builder, "a", TILE_M, TILE_K),
            b: Input::declare(builder, "b", config.tile_n, TILE_K),
            c: Output::declare(builder, "c", TILE_M, config.store_cols()),
            config,
        }
    }

    /// Returns the tiles of C.
    #[track_caller]
    pub(super) fn tiles(&self, order: Rasterization) -> TileGrid {
        let cols = self.n.div_ceil(self.config.tile_n);
        order.tiles(self.m.div_ceil(TILE_M), cols)
    }

    /// Declares the ring of A and B.
    #[track_caller]
    pub(super) fn ring(&self, k: Builder) -> Ring<Stage> {
        let Config { tile_n, stages, .. } = self.config;
        k.ring("ab", stages, |s| {
            (s.tile(TILE_M, TILE_K), s.tile(tile_n, TILE_K))
        })
    }

    /// Runs the mainloop of a tile for the rows of A from `top` on.
    #[track_caller]
    pub(super) fn multiply(&self, ab: Ring<Stage>, top: u32, rows: u32) -> Acc {
        let acc = Acc::new(rows, self.config.tile_n);
        steps(self.k_tiles).each(|_| {
            let slot = ab.wait();
            acc.mma(&slot.0.slice(top..top + rows, 0..TILE_K), &slot.1);
            slot.release_after(&acc);
        });
        acc
    }
}

impl<Output> LadderGemm<GlobalPointer, Output> {
    /// Copies this thread's part of a k-tile of A, 16 bytes at a time; out-of-range elements are zero-filled.
    #[track_caller]
    pub(super) fn copy_a(&self, to: TileRef<bf16>, tile: TileIndex, step: Reg<u32>) {
        self.copy(to, self.a, tile.m * TILE_M, self.m, step);
    }

    /// Copies this thread's part of a k-tile of B.
    #[track_caller]
    pub(super) fn copy_b(&self, to: TileRef<bf16>, tile: TileIndex, step: Reg<u32>) {
        self.copy(to, self.b, tile.n * self.config.tile_n, self.n, step);
    }

    #[track_caller]
    fn copy(
        &self,
        to: TileRef<bf16>,
        from: GlobalPointer,
        first: Reg<u32>,
        rows: Reg<u32>,
        step: Reg<u32>,
    ) {
        let threads = 2 * role_threads();
        for chunk in (0..to.rows() * TILE_K / 8).step_by(threads as usize) {
            let chunk = thread_id() + chunk;
            let (row, col) = (chunk / (TILE_K / 8), chunk % (TILE_K / 8) * 8);
            let (y, x) = (first + row, step * TILE_K + col);
            let valid = select(y.lt(rows) & x.lt(self.k), 16u32, 0u32);
            let offset = y.mul_wide(self.k) + x.cast::<u64>();
            to.copy_zfill_from(row, col, from.address(offset), 16, valid);
        }
    }
}

impl<Output> LadderGemm<TensorMap, Output> {
    /// Issues the TMA load of a k-tile of A.
    #[track_caller]
    pub(super) fn load_a(&self, slot: &Slot<Stage, Producing>, tile: TileIndex, step: Reg<u32>) {
        slot.load(self.a, slot.0, [step * TILE_K, tile.m * TILE_M]);
    }

    /// Issues the TMA load of a k-tile of B.
    #[track_caller]
    pub(super) fn load_b(&self, slot: &Slot<Stage, Producing>, tile: TileIndex, step: Reg<u32>) {
        slot.load(self.b, slot.1, [step * TILE_K, tile.n * self.config.tile_n]);
    }

    /// Loads a stage.
    #[track_caller]
    pub(super) fn load(&self, ab: Ring<Stage>, tile: TileIndex, step: Reg<u32>) {
        let slot = ab.acquire();
        self.load_a(&slot, tile, step);
        self.load_b(&slot, tile, step);
        slot.commit();
    }

    /// Loads every stage of a tile.
    #[track_caller]
    pub(super) fn load_all(&self, ab: Ring<Stage>, tile: TileIndex) {
        steps(self.k_tiles).each(|step| self.load(ab, tile, step));
    }
}

impl<Input> LadderGemm<Input, GlobalPointer> {
    /// Stores the accumulators to the rows of a tile from `top` on, two values at a time. N is even, so a pair is
    /// either inside or outside of C.
    #[track_caller]
    pub(super) fn store(&self, acc: &Frag, tile: TileIndex, top: u32) {
        let (row, col) = (tile.m * TILE_M + top, tile.n * self.config.tile_n);
        acc.each_pair(|coord, [x, y]| {
            let (row, col) = (row + coord.row, col + coord.col);
            let to = self.c.offset(row.mul_wide(self.n));
            let pair = Reg::<Bf16x2>::round(x, y);
            if_(row.lt(self.m) & col.lt(self.n), || to.store_as(col, [pair]));
        });
    }
}

impl<Input> LadderGemm<Input, TensorMap> {
    /// Stores the accumulators of a tile through shared memory.
    #[track_caller]
    pub(super) fn store_by_tma(&self, acc: &Frag, outbox: Outbox<bf16>, tile: TileIndex) {
        let offset = [tile.n * self.config.tile_n, tile.m * TILE_M];
        outbox.store(acc, self.c, offset);
    }
}
