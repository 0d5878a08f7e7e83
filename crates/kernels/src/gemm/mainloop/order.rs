//! Which k-tiles a consumer takes, and when.

use warpline_ir::build::*;

/// The k-tiles that a consumer takes, and when.
#[derive(Clone, Copy)]
pub(in crate::gemm) enum MainloopOrder {
    /// As they come.
    Unordered(Range<u32>),
    /// All of them while it holds the turn.
    Exclusive(Turn, Range<u32>),
    /// So many, the last [`TAIL`] of them while it holds the turn.
    ExclusiveTail(Turn, Reg<u32>),
}

/// k-tiles at the end of a tile that consumers take one after the other: the
/// epilogue of the first hides behind the products of the next.
pub(in crate::gemm) const TAIL: u32 = 3;

impl MainloopOrder {
    /// Runs `take` for all k-tiles, or for one range after the other.
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
