//! Who knows of what: vector clocks over the warps and engines of a cluster.
//!
//! A warp's life is cut into *segments*, numbered up; a new one starts at each
//! release and at each warp-level sync. An access happened before a point of
//! the program if that point *knows* the segment it was in.
//!
//! Lanes do not know of each other by themselves: what a lane releases is its
//! own segments, plus all that the whole warp did before its last warp-level
//! sync. So knowledge of a warp is *all lanes below `full`, and the lanes of
//! `lanes` below `part`*. Joining two such pieces may claim a little more than
//! both said; that can hide a race of one schedule, and never invents one.
//!
//! Engines are threads of their own, with one number each. Bytes that arrive
//! on an mbarrier belong to the thread of that barrier, numbered by its phase;
//! bulk groups to the thread of the issuing warp, numbered by copy; wgmmas to
//! the thread of the warpgroup, numbered by instruction. A wait that passes
//! makes the number known.

use warpline_ir::Mask;

/// Numbers the threads of a cluster: warps first, then engines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Threads {
    /// CTAs.
    pub(crate) ctas: u32,
    /// Warps of one CTA.
    pub(crate) warps: u32,
    /// mbarriers of one CTA.
    pub(crate) bars: u32,
}

impl Threads {
    fn engines_per_cta(&self) -> u32 {
        self.bars + self.warps + self.warps.div_ceil(4)
    }

    /// All warps.
    pub(crate) fn all_warps(&self) -> u32 {
        self.ctas * self.warps
    }

    /// All engines.
    fn all_engines(&self) -> u32 {
        self.ctas * self.engines_per_cta()
    }

    /// The engine of an mbarrier.
    pub(crate) fn barrier(&self, cta: u32, slot: u32) -> u32 {
        self.all_warps() + cta * self.engines_per_cta() + slot
    }

    /// The engine of a warp's bulk groups; warps are counted through the cluster.
    pub(crate) fn bulk(&self, warp: u32) -> u32 {
        let (cta, warp) = (warp / self.warps, warp % self.warps);
        self.all_warps() + cta * self.engines_per_cta() + self.bars + warp
    }

    /// The engine of a warp's warpgroup; warps are counted through the cluster.
    pub(crate) fn wgmma(&self, warp: u32) -> u32 {
        let (cta, warp) = (warp / self.warps, warp % self.warps);
        self.all_warps() + cta * self.engines_per_cta() + self.bars + self.warps + warp / 4
    }
}

/// One moment of one thread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Moment {
    /// A warp or an engine.
    pub(crate) thread: u32,
    /// The lane, or [`ALL_LANES`].
    pub(crate) lane: u8,
    /// The segment, phase or number.
    pub(crate) clock: u32,
}

/// Not one lane but several, or the whole warp.
pub(crate) const ALL_LANES: u8 = 32;

/// What is known of one warp.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Known {
    /// All lanes, below this segment.
    full: u32,
    /// The lanes of `lanes`, below this segment.
    part: u32,
    lanes: Mask,
}

impl Known {
    #[inline]
    fn covers(&self, lane: u8, clock: u32) -> bool {
        clock < self.full || clock < self.part && lane < ALL_LANES && self.lanes >> lane & 1 == 1
    }

    fn join(&mut self, other: &Known) {
        self.full = self.full.max(other.full);
        let more = |k: &Known| if k.part > self.full { k.lanes } else { 0 };
        self.lanes = more(self) | more(other);
        self.part = self.part.max(other.part);
    }
}

/// What is known of every thread.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    warps: Box<[Known]>,
    engines: Box<[u32]>,
}

impl Clock {
    /// Nothing.
    pub(crate) fn new(t: &Threads) -> Self {
        Self {
            warps: vec![Known::default(); t.all_warps() as usize].into(),
            engines: vec![0; t.all_engines() as usize].into(),
        }
    }

    /// Adds what another knows.
    pub(crate) fn join(&mut self, other: &Clock) {
        for (a, b) in self.warps.iter_mut().zip(&other.warps) {
            a.join(b);
        }
        for (a, b) in self.engines.iter_mut().zip(&other.engines) {
            *a = (*a).max(*b);
        }
    }

    /// Takes over what another knows, and forgets the rest.
    pub(crate) fn copy(&mut self, other: &Clock) {
        self.warps.copy_from_slice(&other.warps);
        self.engines.copy_from_slice(&other.engines);
    }

    /// Learns that an engine is past a number.
    pub(crate) fn learn(&mut self, engine: u32, past: u32) {
        let e = &mut self.engines[engine as usize - self.warps.len()];
        *e = (*e).max(past);
    }

    #[inline]
    fn knows(&self, m: &Moment) -> bool {
        match self.warps.get(m.thread as usize) {
            Some(k) => k.covers(m.lane, m.clock),
            None => m.clock < self.engines[m.thread as usize - self.warps.len()],
        }
    }
}

/// What one warp knows, and how far it is itself.
#[derive(Clone, Debug)]
pub(crate) struct WarpClock {
    /// The warp's own thread.
    pub(crate) thread: u32,
    /// The current segment.
    pub(crate) now: u32,
    /// The lanes know of each other's segments below this one.
    synced: u32,
    /// What every lane knows.
    known: Clock,
    /// What only some lanes know, until the next warp-level sync.
    some: Option<(Mask, Clock)>,
}

impl WarpClock {
    /// A warp at its start.
    pub(crate) fn new(t: &Threads, thread: u32) -> Self {
        Self {
            thread,
            now: 1,
            synced: 1,
            known: Clock::new(t),
            some: None,
        }
    }

    /// Does a lane know of a moment?
    #[inline]
    pub(crate) fn knows(&self, lane: u8, m: &Moment) -> bool {
        if m.thread == self.thread && (lane == ALL_LANES || lane == m.lane || m.clock < self.synced)
        {
            return true;
        }
        self.known.knows(m)
            || self.some.as_ref().is_some_and(|(lanes, c)| {
                (lane == ALL_LANES || lanes >> lane & 1 == 1) && c.knows(m)
            })
    }

    /// Does every lane know of a moment?
    #[inline]
    pub(crate) fn all_know(&self, m: &Moment) -> bool {
        m.thread == self.thread && m.clock < self.synced || self.known.knows(m)
    }

    /// All lanes meet: what one knows, all know.
    pub(crate) fn sync(&mut self) {
        if let Some((_, c)) = self.some.take() {
            self.known.join(&c);
        }
        self.now += 1;
        self.synced = self.now;
    }

    /// Hands what some lanes know and did to a barrier, and starts a segment.
    pub(crate) fn release(&mut self, lanes: Mask, into: &mut Clock) {
        self.tell(lanes, into);
        self.now += 1;
    }

    /// What some lanes know and did so far.
    pub(crate) fn tell(&self, lanes: Mask, into: &mut Clock) {
        into.join(&self.known);
        if let Some((some, c)) = &self.some
            && some & lanes != 0
        {
            into.join(c);
        }
        let past = self.now + 1;
        into.warps[self.thread as usize].join(&Known {
            full: if lanes == Mask::MAX {
                past
            } else {
                self.synced
            },
            part: past,
            lanes,
        });
    }

    /// Takes what a barrier knows, for some lanes.
    pub(crate) fn acquire(&mut self, lanes: Mask, from: &Clock) {
        self.knowing(lanes).join(from);
    }

    /// Learns, for some lanes, that an engine is past a number.
    pub(crate) fn learn(&mut self, lanes: Mask, engine: u32, past: u32) {
        self.knowing(lanes).learn(engine, past);
    }

    fn knowing(&mut self, lanes: Mask) -> &mut Clock {
        if lanes == Mask::MAX {
            return &mut self.known;
        }
        let known = &self.known;
        let (some, clock) = self.some.get_or_insert_with(|| {
            (
                0,
                Clock {
                    warps: vec![Known::default(); known.warps.len()].into(),
                    engines: vec![0; known.engines.len()].into(),
                },
            )
        });
        *some |= lanes;
        clock
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: Threads = Threads {
        ctas: 1,
        warps: 2,
        bars: 1,
    };

    fn did(w: &WarpClock, lane: u8) -> Moment {
        Moment {
            thread: w.thread,
            lane,
            clock: w.now,
        }
    }

    #[test]
    fn an_elected_arrival_releases_its_lane_and_what_the_warp_synced() {
        let (mut a, mut b) = (WarpClock::new(&T, 0), WarpClock::new(&T, 1));
        let before = did(&a, 7);
        a.sync();
        let (own, others) = (did(&a, 0), did(&a, 7));
        let mut bar = Clock::new(&T);
        a.release(1, &mut bar);
        let after = did(&a, 0);
        b.acquire(Mask::MAX, &bar);
        assert!(b.knows(3, &before) && b.knows(3, &own));
        assert!(!b.knows(3, &others) && !b.knows(3, &after));
    }

    #[test]
    fn what_one_lane_learns_the_warp_knows_after_a_sync() {
        let (mut a, mut b) = (WarpClock::new(&T, 0), WarpClock::new(&T, 1));
        let x = did(&a, 4);
        let mut bar = Clock::new(&T);
        a.release(Mask::MAX, &mut bar);
        b.acquire(1, &bar);
        assert!(b.knows(0, &x) && !b.knows(1, &x));
        b.sync();
        assert!(b.knows(1, &x));
    }

    #[test]
    fn lanes_know_each_other_only_after_a_sync() {
        let mut a = WarpClock::new(&T, 0);
        let x = did(&a, 4);
        assert!(a.knows(4, &x) && !a.knows(5, &x) && a.knows(ALL_LANES, &x));
        a.sync();
        assert!(a.knows(5, &x));
    }

    #[test]
    fn engines_are_known_by_number() {
        let mut a = WarpClock::new(&T, 0);
        let phase = |clock| Moment {
            thread: T.barrier(0, 0),
            lane: ALL_LANES,
            clock,
        };
        a.learn(Mask::MAX, T.barrier(0, 0), 2);
        assert!(a.knows(0, &phase(1)) && !a.knows(0, &phase(2)));
        assert_eq!(
            [T.barrier(0, 0), T.bulk(0), T.bulk(1), T.wgmma(1)],
            [2, 3, 4, 5]
        );
    }
}
