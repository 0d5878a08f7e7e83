//! Stream-K: splits the k-tiles of all output tiles evenly across the CTAs.
//!
//! A share may begin or end inside a tile. The CTA with a tile's first k-tile
//! finishes the tile: it adds the [`PartialTiles`](super::PartialTiles) of the
//! CTAs that compute the rest. A CTA stores at most one partial tile, for its
//! first tile, before it waits for any, so the waits have no cycle.

use super::flow::{Range, range, select};
use super::rasterization::{TileGrid, TileIndex};
use super::reg::Reg;
use super::state::caller_scope;
use super::warp::{cta_id, grid_ctas};

/// A stream-K schedule over a [`TileGrid`].
#[derive(Clone, Copy, Debug)]
pub struct StreamK {
    tiles: TileGrid,
    k_tiles: Reg<u32>,
    /// The k-tiles of the smallest share.
    k_tiles_per_cta: Reg<u32>,
    /// The number of CTAs, from index 0, whose share has one more k-tile.
    larger_shares: Reg<u32>,
}

/// The k-tiles of one output tile that a CTA computes.
#[derive(Clone, Copy, Debug)]
pub struct StreamKShare {
    /// The output tile.
    pub tile: TileIndex,
    /// The first k-tile of the share.
    pub from: Reg<u32>,
    /// The end of the share: the last k-tile plus 1.
    pub to: Reg<u32>,
    /// The CTA with the tile's last k-tile.
    last_cta: Reg<u32>,
}

impl TileGrid {
    /// Returns the stream-K schedule of the grid; each tile has `k_tiles` (at least 1).
    #[track_caller]
    pub fn stream_k(self, k_tiles: Reg<u32>) -> StreamK {
        let _caller = caller_scope();
        let k_tiles = k_tiles.max(1u32);
        let (total, ctas) = (self.count() * k_tiles, grid_ctas());
        let k_tiles_per_cta = total / ctas;
        StreamK {
            tiles: self,
            k_tiles,
            k_tiles_per_cta,
            larger_shares: total - k_tiles_per_cta * ctas,
        }
    }
}

impl StreamK {
    /// Returns the first k-tile of a CTA's share.
    #[track_caller]
    fn first_k_tile(self, cta: Reg<u32>) -> Reg<u32> {
        cta * self.k_tiles_per_cta + cta.min(self.larger_shares)
    }

    /// Returns the CTA that computes a k-tile.
    #[track_caller]
    fn owner(self, k_tile: Reg<u32>) -> Reg<u32> {
        let larger = self.k_tiles_per_cta + 1;
        let in_larger_shares = self.larger_shares * larger;
        let smaller_share_owner =
            self.larger_shares + (k_tile - in_larger_shares) / self.k_tiles_per_cta.max(1u32);
        select(
            k_tile.lt(in_larger_shares),
            k_tile / larger,
            smaller_share_owner,
        )
    }

    /// Runs `body` for every output tile that this CTA computes part of.
    #[track_caller]
    pub fn each(self, body: impl FnOnce(StreamKShare)) {
        let _caller = caller_scope();
        let cta = cta_id();
        let (first, end) = (self.first_k_tile(cta), self.first_k_tile(cta + 1));
        // An empty share begins and ends after the last tile.
        let is_nonempty = end.min(1u32);
        let tiles = range(
            first / self.k_tiles,
            (end - is_nonempty) / self.k_tiles + is_nonempty,
        );
        tiles.each(|tile| {
            let start = tile * self.k_tiles;
            body(StreamKShare {
                tile: self.tiles.at(tile),
                from: first.max(start) - start,
                to: (end - start).min(self.k_tiles),
                last_cta: self.owner(start + self.k_tiles - 1),
            });
        });
    }
}

impl StreamKShare {
    /// Returns whether this CTA finishes the tile; otherwise it stores a partial tile for the
    /// CTA that does.
    #[track_caller]
    pub fn finishes_tile(self) -> Reg<bool> {
        self.from.eq(0u32)
    }

    /// Returns the loop over the k-tiles of the share.
    #[track_caller]
    pub fn k_tiles(self) -> Range<u32> {
        range(self.from, self.to)
    }

    /// Returns the loop over the CTAs whose partial tiles the finishing CTA adds.
    #[track_caller]
    pub fn contributors(self) -> Range<u32> {
        range(cta_id() + 1, self.last_cta + 1)
    }

    /// Returns the index of this CTA's partial tile: the CTA's index.
    #[track_caller]
    pub fn partial_index(self) -> Reg<u32> {
        cta_id()
    }
}
