//! Stream-K: the steps of all tiles as one line, cut into equal shares for the CTAs.
//!
//! A share may end, or begin, inside a tile. The CTA that has a tile's first
//! step finishes it, and adds what the CTAs after it leave as
//! [`PartialTiles`](super::PartialTiles). A CTA leaves at most one, from its
//! first tile, before it waits for any: so nobody waits in a circle.

use super::flow::{Range, range, select};
use super::order::{TileAt, Tiles};
use super::reg::Reg;
use super::state::here;
use super::warp::{cta_id, grid_ctas};

/// The steps of all tiles, shared out evenly.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    tiles: Tiles,
    steps: Reg<u32>,
    /// Steps of every CTA, and how many CTAs have one more.
    each: Reg<u32>,
    more: Reg<u32>,
}

/// What a CTA does of one tile.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// The tile.
    pub tile: TileAt,
    /// Its first step.
    pub from: Reg<u32>,
    /// The step after its last.
    pub to: Reg<u32>,
    /// The CTA that has the tile's last step.
    last: Reg<u32>,
}

impl Tiles {
    /// The tiles as a stream of `steps` (at least one) for each.
    #[track_caller]
    pub fn stream(self, steps: Reg<u32>) -> Stream {
        let _at = here();
        let steps = steps.max(1u32);
        let (all, ctas) = (self.count() * steps, grid_ctas());
        let each = all / ctas;
        Stream {
            tiles: self,
            steps,
            each,
            more: all - each * ctas,
        }
    }
}

impl Stream {
    /// The first step of a CTA's share.
    #[track_caller]
    fn first(self, cta: Reg<u32>) -> Reg<u32> {
        cta * self.each + cta.min(self.more)
    }

    /// The CTA that has a step.
    #[track_caller]
    fn owner(self, step: Reg<u32>) -> Reg<u32> {
        let longer = self.each + 1;
        let ahead = self.more * longer;
        let late = self.more + (step - ahead) / self.each.max(1u32);
        select(step.lt(ahead), step / longer, late)
    }

    /// Runs `body` for every tile of which this CTA has a share.
    #[track_caller]
    pub fn each(self, body: impl FnOnce(Share)) {
        let _at = here();
        let cta = cta_id();
        let (first, end) = (self.first(cta), self.first(cta + 1));
        // An empty share begins and ends behind the last tile.
        let some = end.min(1u32);
        let tiles = range(first / self.steps, (end - some) / self.steps + some);
        tiles.each(|tile| {
            let start = tile * self.steps;
            body(Share {
                tile: self.tiles.at(tile),
                from: first.max(start) - start,
                to: (end - start).min(self.steps),
                last: self.owner(start + self.steps - 1),
            });
        });
    }
}

impl Share {
    /// Is the tile finished here? Otherwise its sums are left for the CTA that does.
    #[track_caller]
    pub fn finishes(self) -> Reg<bool> {
        self.from.eq(0u32)
    }

    /// The steps.
    #[track_caller]
    pub fn steps(self) -> Range<u32> {
        range(self.from, self.to)
    }

    /// Where it is finished: the CTAs that leave the rest of it.
    #[track_caller]
    pub fn others(self) -> Range<u32> {
        range(cta_id() + 1, self.last + 1)
    }

    /// The place of this CTA's partial tile: its own number.
    #[track_caller]
    pub fn place(self) -> Reg<u32> {
        cta_id()
    }
}
