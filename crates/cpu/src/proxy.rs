//! Proxy fences: what a warp's lanes did before they ran one.

use crate::clock::Moment;
use crate::warp_clock::{ALL_LANES, WarpClock};
use warpline_ir::Mask;

/// The proxy fences of one warp, numbered from 1 as they ran.
#[derive(Clone, Default, Debug)]
pub(crate) struct ProxyFences {
    /// Fences run so far.
    pub(crate) count: u32,
    /// By lane: its last fence that orders by itself, of the own CTA's shared memory at least.
    whole: [u32; 32],
    /// By lane: its last one of the shared memory of the cluster.
    cluster: [u32; 32],
    /// By lane: its last fence that releases.
    released: [u32; 32],
    /// The last fence that acquires.
    acquired: Option<Box<Acquired>>,
}

/// A fence that acquires.
#[derive(Clone, Debug)]
struct Acquired {
    number: u32,
    lanes: Mask,
    /// What the warp knew then.
    clock: WarpClock,
}

fn note(last: &mut [u32; 32], lanes: Mask, number: u32) {
    for (lane, at) in last.iter_mut().enumerate() {
        if lanes >> lane & 1 == 1 {
            *at = number;
        }
    }
}

/// Did each of some lanes run a fence after so many? The first of their last ones.
fn since(last: &[u32; 32], lanes: Mask, count: u32) -> Option<u32> {
    let of = last.iter().enumerate().filter(|(l, _)| lanes >> l & 1 == 1);
    of.map(|(_, &last)| last).min().filter(|&last| last > count)
}

impl ProxyFences {
    /// Some lanes run a fence that orders by itself, in the cluster or the own CTA.
    pub(crate) fn whole(&mut self, lanes: Mask, cluster: bool) {
        self.count += 1;
        note(&mut self.whole, lanes, self.count);
        if cluster {
            note(&mut self.cluster, lanes, self.count);
        }
    }

    /// Some lanes run one that releases.
    pub(crate) fn release(&mut self, lanes: Mask) {
        self.count += 1;
        note(&mut self.released, lanes, self.count);
    }

    /// Some lanes run one that acquires.
    pub(crate) fn acquire(&mut self, lanes: Mask, clock: &WarpClock) {
        self.count += 1;
        self.acquired = Some(Box::new(Acquired {
            number: self.count,
            lanes,
            clock: clock.clone(),
        }));
    }

    /// Has each of some lanes run a fence that orders by itself, after so many?
    /// One of the own CTA's memory will do if `own` is asked for.
    pub(crate) fn ordered(&self, lanes: Mask, count: u32, own: bool) -> bool {
        let last = if own { &self.whole } else { &self.cluster };
        since(last, lanes, count).is_some()
    }

    /// The first of the lanes' last fences that release, after so many.
    pub(crate) fn released(&self, lanes: Mask, count: u32) -> Option<u32> {
        since(&self.released, lanes, count)
    }

    /// Has a lane run a fence that acquires, knowing of an access that was
    /// released, if by the warp itself, by the fence of a number?
    pub(crate) fn acquired(&self, lane: u8, m: &Moment, released: u32) -> bool {
        self.acquired.as_ref().is_some_and(|a| {
            let ran = match lane {
                ALL_LANES => a.lanes == Mask::MAX,
                lane => a.lanes >> lane & 1 == 1,
            };
            let own = m.thread == a.clock.thread;
            ran && a.clock.knows(lane, m) && (!own || released < a.number)
        })
    }
}
