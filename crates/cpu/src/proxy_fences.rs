//! Proxy fences of each warp.
//!
//! A fence orders a generic access before an asynchronous op if the lane of the access ran the fence
//! after the access, and the issue of the op is ordered after the fence.

use crate::clock::Epoch;
use crate::warp_clock::{ALL_LANES, WarpClock};
use warpline_ir::Mask;

/// The memory that a fence covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FenceCoverage {
    /// The shared memory of the own CTA.
    Cta,
    /// The shared memory of the cluster.
    Cluster,
    /// The shared memory of the own CTA, with an acquire fence of the issuer.
    Release,
}

/// A proxy fence of some lanes.
#[derive(Clone, Copy, Debug)]
struct ProxyFence {
    lanes: Mask,
    /// The segment.
    clock: u32,
    covers: FenceCoverage,
}

/// The proxy fences of one warp.
#[derive(Clone, Default, Debug)]
pub(crate) struct ProxyFences {
    ran: Vec<ProxyFence>,
    /// The last acquire fence.
    acquired: Option<Box<Acquired>>,
}

/// An acquire fence.
#[derive(Clone, Debug)]
struct Acquired {
    /// The number of fences of the warp before it.
    count: usize,
    lanes: Mask,
    /// The clock of the warp at the fence.
    clock: WarpClock,
}

impl ProxyFences {
    /// Returns the number of fences so far, without acquire fences.
    pub(crate) fn count(&self) -> u32 {
        self.ran.len() as u32
    }

    /// Records a fence of some lanes in a segment.
    pub(crate) fn run(&mut self, lanes: Mask, clock: u32, covers: FenceCoverage) {
        self.ran.push(ProxyFence {
            lanes,
            clock,
            covers,
        });
    }

    /// Records an acquire fence of some lanes.
    pub(crate) fn acquire(&mut self, lanes: Mask, clock: &WarpClock) {
        self.acquired = Some(Box::new(Acquired {
            count: self.ran.len(),
            lanes,
            clock: clock.clone(),
        }));
    }

    /// Whether each lane of an access ran a matching fence with a number in `numbers` that is ordered
    /// before the issue. A clock that includes a later fence of a lane includes the earlier one, so
    /// the first matching fence decides.
    fn ran(
        &self,
        m: &Epoch,
        numbers: std::ops::Range<usize>,
        fits: impl Fn(FenceCoverage) -> bool,
        has_seen: impl Fn(&Epoch) -> bool,
    ) -> bool {
        let mut left = m.lanes;
        for f in self.ran.get(numbers).unwrap_or_default() {
            let lanes = f.lanes & left;
            if lanes == 0 || !fits(f.covers) {
                continue;
            }
            let clock = f.clock;
            if !has_seen(&Epoch { lanes, clock, ..*m }) {
                return false;
            }
            left &= !lanes;
            if left == 0 {
                return true;
            }
        }
        false
    }

    /// Whether each lane of an access of this warp ran a full fence afterwards that is ordered before
    /// the issue; `own`: the access is to the own CTA.
    pub(crate) fn is_fenced(
        &self,
        m: &Epoch,
        count: u32,
        own: bool,
        has_seen: impl Fn(&Epoch) -> bool,
    ) -> bool {
        let fits = |c| c == FenceCoverage::Cluster || own && c == FenceCoverage::Cta;
        self.ran(m, count as usize..self.ran.len(), fits, has_seen)
    }

    /// Whether each lane of an access of this warp ran a release fence afterwards, and the issuing
    /// lane ran an acquire fence after that.
    pub(crate) fn is_released_and_acquired(
        &self,
        m: &Epoch,
        count: u32,
        to: &ProxyFences,
        lane: u8,
    ) -> bool {
        let Some(a) = &to.acquired else { return false };
        let runs = match lane {
            ALL_LANES => a.lanes == Mask::MAX,
            lane => a.lanes >> lane & 1 == 1,
        };
        // Only fences before the acquire fence count.
        let end = match m.thread == a.clock.thread {
            true => a.count,
            false => self.ran.len(),
        };
        runs && self.ran(
            m,
            count as usize..end,
            |c| c == FenceCoverage::Release,
            |fence| a.clock.has_seen(lane, fence),
        )
    }
}
