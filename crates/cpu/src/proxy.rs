//! Proxy fences: which lanes of a warp ran one, and when.
//!
//! A fence orders an access before an engine's work if the lane of the access
//! ran it after the access, and whoever issues the work knows of the fence.

use crate::clock::Moment;
use crate::warp_clock::{ALL_LANES, WarpClock};
use warpline_ir::Mask;

/// What a fence orders.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Covers {
    /// By itself, the shared memory of the own CTA.
    Cta,
    /// By itself, the shared memory of the cluster.
    Cluster,
    /// The shared memory of the own CTA, with an acquire of who issues.
    Release,
}

/// One fence of some lanes.
#[derive(Clone, Copy, Debug)]
struct Ran {
    lanes: Mask,
    /// The segment.
    clock: u32,
    covers: Covers,
}

/// The proxy fences of one warp.
#[derive(Clone, Default, Debug)]
pub(crate) struct ProxyFences {
    ran: Vec<Ran>,
    /// The last fence that acquires.
    acquired: Option<Box<Acquired>>,
}

/// A fence that acquires.
#[derive(Clone, Debug)]
struct Acquired {
    /// Fences that the warp had run before.
    count: usize,
    lanes: Mask,
    /// What the warp knew then.
    clock: WarpClock,
}

impl ProxyFences {
    /// Fences run so far, but for those that acquire.
    pub(crate) fn count(&self) -> u32 {
        self.ran.len() as u32
    }

    /// Some lanes run a fence, in a segment.
    pub(crate) fn run(&mut self, lanes: Mask, clock: u32, covers: Covers) {
        self.ran.push(Ran {
            lanes,
            clock,
            covers,
        });
    }

    /// Some lanes run one that acquires.
    pub(crate) fn acquire(&mut self, lanes: Mask, clock: &WarpClock) {
        self.acquired = Some(Box::new(Acquired {
            count: self.ran.len(),
            lanes,
            clock: clock.clone(),
        }));
    }

    /// Has each lane of an access run a fence that fits, after so many and
    /// below a number, of which another knows? Of two fences of a lane who
    /// knows of the second knows of the first, so that the first decides.
    fn ran(
        &self,
        m: &Moment,
        numbers: std::ops::Range<usize>,
        fits: impl Fn(Covers) -> bool,
        knows: impl Fn(&Moment) -> bool,
    ) -> bool {
        let mut left = m.lanes;
        for f in self.ran.get(numbers).unwrap_or_default() {
            let lanes = f.lanes & left;
            if lanes == 0 || !fits(f.covers) {
                continue;
            }
            let clock = f.clock;
            if !knows(&Moment { lanes, clock, ..*m }) {
                return false;
            }
            left &= !lanes;
            if left == 0 {
                return true;
            }
        }
        false
    }

    /// Has each lane of an access of this warp, to memory of the own CTA or of
    /// a peer, run a fence since that orders by itself, of which another knows?
    pub(crate) fn order(
        &self,
        m: &Moment,
        count: u32,
        own: bool,
        knows: impl Fn(&Moment) -> bool,
    ) -> bool {
        let fits = |c| c == Covers::Cluster || own && c == Covers::Cta;
        self.ran(m, count as usize..self.ran.len(), fits, knows)
    }

    /// Has each lane of an access of this warp run a fence since that releases,
    /// and has a lane of another warp, or of this, acquired after that?
    pub(crate) fn hand_over(&self, m: &Moment, count: u32, to: &ProxyFences, lane: u8) -> bool {
        let Some(a) = &to.acquired else { return false };
        let runs = match lane {
            ALL_LANES => a.lanes == Mask::MAX,
            lane => a.lanes >> lane & 1 == 1,
        };
        // Of the own fences those that came before.
        let end = match m.thread == a.clock.thread {
            true => a.count,
            false => self.ran.len(),
        };
        runs && self.ran(
            m,
            count as usize..end,
            |c| c == Covers::Release,
            |fence| a.clock.knows(lane, fence),
        )
    }
}
