//! Proxy fences: what a warp's lanes did before they ran one.

use crate::clock::{ALL_LANES, Moment, WarpClock};
use warpline_ir::Mask;

/// The proxy fences of one warp, numbered from 1 as they ran.
#[derive(Clone, Default, Debug)]
pub(crate) struct ProxyFences {
    /// Fences run so far.
    pub(crate) count: u32,
    /// By lane: its last fence that orders by itself.
    whole: [u32; 32],
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

/// Did a lane run a fence after so many? Which of several lanes it was is not known: any of them will do.
fn since(last: &[u32; 32], lane: u8, count: u32) -> Option<u32> {
    let last = last.get(lane as usize).or_else(|| last.iter().max());
    last.copied().filter(|&last| last > count)
}

impl ProxyFences {
    /// Some lanes run a fence that orders by itself.
    pub(crate) fn whole(&mut self, lanes: Mask) {
        self.count += 1;
        note(&mut self.whole, lanes, self.count);
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

    /// Has a lane run a fence that orders by itself, after so many?
    pub(crate) fn ordered(&self, lane: u8, count: u32) -> bool {
        since(&self.whole, lane, count).is_some()
    }

    /// The lane's last fence that releases, after so many.
    pub(crate) fn released(&self, lane: u8, count: u32) -> Option<u32> {
        since(&self.released, lane, count)
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
