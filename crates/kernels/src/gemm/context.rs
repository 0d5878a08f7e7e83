//! The parameters and components of one GEMM kernel, shared by all schedules.

use super::config::{Config, TileRegion};
use super::epilogue::{Epilogue, Out};
use super::mainloop::{AbRing, Extents, Mainloop, MainloopOrder};
use super::offset::Offset;
use super::problem::{Class, MAX_EXTENT, MAX_TILES};
use super::tile_scheduler::{TileCoord, TileScheduler};
use warpline_ir::Element;
use warpline_ir::builder::*;

/// The parameters of a kernel, and the components that its schedule combines.
pub(super) struct GemmContext<T: Out> {
    pub(super) class: Class,
    pub(super) config: Config,
    /// Number of k-tiles of a tile.
    pub(super) k_tiles: Reg<u32>,
    pub(super) tiles: TileScheduler,
    pub(super) mainloop: Mainloop,
    pub(super) epilogue: Epilogue<T>,
}

impl<T: Out> GemmContext<T> {
    /// Declares the parameters.
    pub(super) fn declare(k: Builder, class: &Class, c: &Config) -> Self {
        // A cluster shares loads or splits K, never both.
        let ctas = c.schedule.cluster_ctas();
        if ctas > 1 {
            k.cluster(ctas, 1, 1);
        }
        let [m, n] = ["m", "n"].map(|name| k.param::<u32>(name).at_least(1).at_most(MAX_EXTENT));
        let k_extent = k.param::<u32>("k").at_most(MAX_EXTENT);
        // The order of parameters is part of the program: a gather also has the batch.
        let declare_mainloop = |batch| {
            let extents = Extents {
                m,
                n,
                k: k_extent,
                batch,
            };
            Mainloop::declare(k, class, c, extents)
        };
        let declare_tiles = || TileScheduler::declare(k, c.tile_schedule(class.batched));
        let (mainloop, tiles) = match class.gathers() {
            false => (declare_mainloop(None), declare_tiles()),
            true => {
                let tiles = declare_tiles();
                (declare_mainloop(tiles.batch), tiles)
            }
        };
        if c.schedule.is_stream_k() {
            // One counter runs over the k-tiles of all tiles.
            let k_tiles = tiles.extent() * (extent(k_extent) + (c.tile_k - 1));
            k.limit(k_tiles, MAX_TILES * u64::from(c.tile_k));
        }
        Self {
            class: *class,
            config: *c,
            k_tiles: k_extent.div_ceil(c.tile_k),
            epilogue: Epilogue::declare(k, class, c, [m, n], tiles.batch),
            tiles,
            mainloop,
        }
    }

    /// Returns the offset of a CTA's tile.
    #[track_caller]
    pub(super) fn offset(&self, tile: TileCoord) -> Offset {
        let (m, n) = (tile.m * self.config.tile_m, tile.n * self.config.tile_n);
        let (row, col) = if self.config.swap_ab() {
            (n, m)
        } else {
            (m, n)
        };
        let batch = tile.batch;
        Offset { row, col, batch }
    }

    /// Accumulates a consumer's region of a tile over `k_tiles`, without a turn.
    #[track_caller]
    pub(super) fn accumulate<A: Element, B: Element>(
        &self,
        ab: AbRing<A, B>,
        k_tiles: Range<u32>,
        region: &TileRegion,
    ) -> Frag {
        let order = MainloopOrder::Unordered(k_tiles);
        self.mainloop.accumulate(ab, order, region)
    }

    /// Returns a consumer's region of a tile.
    pub(super) fn region(&self, consumer: u32) -> TileRegion {
        self.config.region(&self.class, consumer)
    }
}
