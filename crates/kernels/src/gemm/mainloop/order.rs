//! The order in which consumers multiply k-tiles.

use warpline_ir::builder::*;

/// The k-tiles of a consumer, and the turn that it needs for them.
#[derive(Clone, Copy)]
pub(in crate::gemm) enum MainloopOrder {
    /// Without a turn.
    Unordered(Range<u32>),
    /// All k-tiles while the consumer holds the turn.
    Exclusive(Turn, Range<u32>),
    /// A number of k-tiles; the consumer holds the turn for the last [`TAIL`].
    ExclusiveTail(Turn, Reg<u32>),
}

/// k-tiles at the end of a tile that consumers multiply one after the other: the epilogue of the
/// first then overlaps the wgmmas of the next.
pub(in crate::gemm) const TAIL: u32 = 3;

impl MainloopOrder {
    /// Runs `body` for all k-tiles, in one or two ranges.
    #[track_caller]
    pub(super) fn for_each_range(self, body: impl Fn(Range<u32>)) {
        let MainloopOrder::ExclusiveTail(turn, k_tiles) = self else {
            return self.with_all(body);
        };
        if_else(
            k_tiles.lt(TAIL),
            || self.with_all(&body),
            || {
                body(steps(k_tiles - TAIL));
                turn.hold(|| body(steps(TAIL)));
            },
        );
    }

    /// Runs `body` once, with all k-tiles.
    #[track_caller]
    pub(super) fn with_all<R>(self, body: impl FnOnce(Range<u32>) -> R) -> R {
        match self {
            MainloopOrder::Unordered(all) => body(all),
            MainloopOrder::Exclusive(turn, all) => turn.hold(|| body(all)),
            MainloopOrder::ExclusiveTail(turn, k_tiles) => turn.hold(|| body(steps(k_tiles))),
        }
    }
}
