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
    /// The shared memory of the own CTA; the issuer must run an acquire fence.
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
    fences: Vec<ProxyFence>,
    /// The last acquire fence.
    acquired: Option<Box<AcquireFence>>,
}

/// An acquire fence.
#[derive(Clone, Debug)]
struct AcquireFence {
    /// The number of fences of the warp before it.
    count: usize,
    lanes: Mask,
    /// The clock of the warp at the fence.
    clock: WarpClock,
}

impl ProxyFences {
    /// Returns the number of fences so far; acquire fences do not count.
    pub(crate) fn count(&self) -> u32 {
        self.fences.len() as u32
    }

    /// Records a fence of some lanes in a segment.
    pub(crate) fn record(&mut self, lanes: Mask, clock: u32, covers: FenceCoverage) {
        self.fences.push(ProxyFence {
            lanes,
            clock,
            covers,
        });
    }

    /// Records an acquire fence of some lanes.
    pub(crate) fn record_acquire(&mut self, lanes: Mask, clock: &WarpClock) {
        self.acquired = Some(Box::new(AcquireFence {
            count: self.fences.len(),
            lanes,
            clock: clock.clone(),
        }));
    }

    /// Whether each lane of an access ran a matching fence with a number in `numbers` that is ordered
    /// before the issue. The first matching fence of a lane decides, because a clock that includes a
    /// later fence of the lane includes the earlier one.
    fn all_lanes_fenced(
        &self,
        m: &Epoch,
        numbers: std::ops::Range<usize>,
        matches: impl Fn(FenceCoverage) -> bool,
        has_seen: impl Fn(&Epoch) -> bool,
    ) -> bool {
        let mut unfenced = m.lanes;
        for f in self.fences.get(numbers).unwrap_or_default() {
            let lanes = f.lanes & unfenced;
            if lanes == 0 || !matches(f.covers) {
                continue;
            }
            let clock = f.clock;
            if !has_seen(&Epoch { lanes, clock, ..*m }) {
                return false;
            }
            unfenced &= !lanes;
            if unfenced == 0 {
                return true;
            }
        }
        false
    }

    /// Whether each lane of an access of this warp ran a full fence afterwards that is ordered before
    /// the issue. `own_cta`: whether the access is to the own CTA of the warp.
    pub(crate) fn is_fenced(
        &self,
        m: &Epoch,
        count: u32,
        own_cta: bool,
        has_seen: impl Fn(&Epoch) -> bool,
    ) -> bool {
        let matches = |c| c == FenceCoverage::Cluster || own_cta && c == FenceCoverage::Cta;
        self.all_lanes_fenced(m, count as usize..self.fences.len(), matches, has_seen)
    }

    /// Whether each lane of an access of this warp ran a release fence afterwards, and the issuing
    /// lane ran an acquire fence after that.
    pub(crate) fn is_released_and_acquired(
        &self,
        m: &Epoch,
        count: u32,
        issuer: &ProxyFences,
        lane: u8,
    ) -> bool {
        let Some(a) = &issuer.acquired else {
            return false;
        };
        let lane_acquired = match lane {
            ALL_LANES => a.lanes == Mask::MAX,
            lane => a.lanes >> lane & 1 == 1,
        };
        // Only fences before the acquire fence count.
        let end = match m.thread == a.clock.thread {
            true => a.count,
            false => self.fences.len(),
        };
        lane_acquired
            && self.all_lanes_fenced(
                m,
                count as usize..end,
                |c| c == FenceCoverage::Release,
                |fence| a.clock.has_seen(lane, fence),
            )
    }
}
