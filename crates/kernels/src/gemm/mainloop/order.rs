//! The order in which consumers multiply k-tiles.

use warpline_ir::builder::*;

/// The k-tiles of a consumer, and the turn that it needs for them.
#[derive(Clone, Copy)]
pub(in crate::gemm) enum MainloopOrder {
    /// Without a turn.
    Unordered(Range<u32>),
    /// All k-tiles while the consumer holds the turn.
    Exclusive(Turn, Range<u32>),
    /// This many k-tiles, the last [`TAIL`] of them while the consumer holds the turn.
    ExclusiveTail(Turn, Reg<u32>),
}

/// k-tiles at the end of a tile that consumers multiply one after the other: the epilogue of the
/// first then overlaps the wgmmas of the next.
pub(in crate::gemm) const TAIL: u32 = 3;

impl MainloopOrder {
    /// Runs `take` for all k-tiles, in one or two ranges.
    #[track_caller]
    pub(super) fn each(self, take: impl Fn(Range<u32>)) {
        let MainloopOrder::ExclusiveTail(turn, k_tiles) = self else {
            return self.whole(take);
        };
        if_else(
            k_tiles.lt(TAIL),
            || self.whole(&take),
            || {
                take(steps(k_tiles - TAIL));
                turn.hold(|| take(steps(TAIL)));
            },
        );
    }

    /// Runs `take` once, for all k-tiles.
    #[track_caller]
    pub(super) fn whole<R>(self, take: impl FnOnce(Range<u32>) -> R) -> R {
        match self {
            MainloopOrder::Unordered(all) => take(all),
            MainloopOrder::Exclusive(turn, all) => turn.hold(|| take(all)),
            MainloopOrder::ExclusiveTail(turn, k_tiles) => turn.hold(|| take(steps(k_tiles))),
        }
    }
}
