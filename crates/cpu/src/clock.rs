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
//!
//! What lanes copy by themselves (`cp.async`) belongs to the *stream* of their
//! warp, numbered by copy, and a lane that waits knows of its own copies alone;
//! so a stream is known lane by lane, as a warp is. What is known of a stream
//! when a proxy fence runs is known as *fenced*, and handed on like the rest.

use crate::far::Far;
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
    /// Do lanes copy by themselves?
    pub(crate) streams: bool,
}

impl Threads {
    fn engines_per_cta(&self) -> u32 {
        self.bars + 2 * self.warps + self.warps.div_ceil(4)
    }

    /// All warps.
    pub(crate) fn all_warps(&self) -> u32 {
        self.ctas * self.warps
    }

    /// All threads that are known lane by lane: warps, their streams, and those as far as fenced.
    fn laned(&self) -> u32 {
        self.all_warps() * if self.streams { 3 } else { 1 }
    }

    /// The stream of a warp; warps are counted through the cluster.
    pub(crate) fn stream(&self, warp: u32) -> u32 {
        self.all_warps() + warp
    }

    /// Is a thread a stream?
    pub(crate) fn is_stream(&self, thread: u32) -> bool {
        self.streams && (self.all_warps()..2 * self.all_warps()).contains(&thread)
    }

    /// All engines.
    fn all_engines(&self) -> u32 {
        self.ctas * self.engines_per_cta()
    }

    /// The engine of an mbarrier.
    pub(crate) fn barrier(&self, cta: u32, slot: u32) -> u32 {
        self.laned() + cta * self.engines_per_cta() + slot
    }

    /// The engine of a warp's bulk groups; warps are counted through the cluster.
    pub(crate) fn bulk(&self, warp: u32) -> u32 {
        let (cta, warp) = (warp / self.warps, warp % self.warps);
        self.laned() + cta * self.engines_per_cta() + self.bars + warp
    }

    /// The engine of what a warp's bulk groups write; warps are counted through the cluster.
    pub(crate) fn bulk_writes(&self, warp: u32) -> u32 {
        self.bulk(warp) + self.warps
    }

    /// The engine of a warp's warpgroup; warps are counted through the cluster.
    pub(crate) fn wgmma(&self, warp: u32) -> u32 {
        let (cta, warp) = (warp / self.warps, warp % self.warps);
        self.laned() + cta * self.engines_per_cta() + self.bars + 2 * self.warps + warp / 4
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
    /// Some lanes, below a number.
    fn of(lanes: Mask, past: u32) -> Self {
        let full = if lanes == Mask::MAX { past } else { 0 };
        let part = past;
        Self { full, part, lanes }
    }

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
    /// Warps, streams, fenced streams.
    warps: Box<[Known]>,
    engines: Box<[u32]>,
    /// What is known of other clusters.
    pub(crate) far: Far,
}

impl Clock {
    /// Nothing.
    pub(crate) fn new(t: &Threads) -> Self {
        Self {
            warps: vec![Known::default(); t.laned() as usize].into(),
            engines: vec![0; t.all_engines() as usize].into(),
            far: Far::default(),
        }
    }

    /// Nothing, of the same threads.
    pub(crate) fn nothing(&self) -> Self {
        Self {
            warps: vec![Known::default(); self.warps.len()].into(),
            engines: vec![0; self.engines.len()].into(),
            far: Far::default(),
        }
    }

    /// What is known of the own cluster alone.
    pub(crate) fn near(&self) -> Self {
        Self {
            warps: self.warps.clone(),
            engines: self.engines.clone(),
            far: Far::default(),
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
        self.far.join(&other.far);
    }

    /// Takes over what another knows, and forgets the rest.
    pub(crate) fn copy(&mut self, other: &Clock) {
        self.warps.copy_from_slice(&other.warps);
        self.engines.copy_from_slice(&other.engines);
        self.far = other.far.clone();
    }

    /// Learns that the copies of some lanes of a stream are past a number.
    pub(crate) fn learn_stream(&mut self, stream: u32, lanes: Mask, past: u32) {
        self.warps[stream as usize].join(&Known::of(lanes, past));
    }

    /// Learns that an engine is past a number.
    pub(crate) fn learn(&mut self, engine: u32, past: u32) {
        let e = &mut self.engines[engine as usize - self.warps.len()];
        *e = (*e).max(past);
    }

    #[inline]
    pub(crate) fn knows(&self, m: &Moment) -> bool {
        match self.warps.get(m.thread as usize) {
            Some(k) => k.covers(m.lane, m.clock),
            None => m.clock < self.engines[m.thread as usize - self.warps.len()],
        }
    }
}

/// What the lanes of a warp know of the warp's own copies.
#[derive(Clone, Copy, Default, Debug)]
struct Own {
    /// The lanes of `each.0` know of their own copies below `each.1`.
    each: (Mask, u32),
    /// What every lane knows of all.
    all: Known,
}

impl Own {
    fn knows(&self, lane: u8, m: &Moment) -> bool {
        self.all.covers(m.lane, m.clock)
            || (lane == ALL_LANES || lane == m.lane)
                && Known::of(self.each.0, self.each.1).covers(m.lane, m.clock)
    }

    /// Each of some lanes knows of its own copies below a number.
    fn learn(&mut self, lanes: Mask, past: u32) {
        if lanes != 0 {
            self.each = (self.each.0 | lanes, self.each.1.max(past));
        }
    }

    /// What some lanes can hand on.
    fn told(&self, lanes: Mask) -> Known {
        let mut told = self.all;
        match self.each.0 & lanes {
            0 => {}
            lanes => told.join(&Known::of(lanes, self.each.1)),
        }
        told
    }
}

/// The warp's own stream: what is done of it, and what is fenced.
#[derive(Clone, Debug)]
struct OwnStream {
    stream: u32,
    fenced_stream: u32,
    done: Own,
    fenced: Own,
}

impl OwnStream {
    fn new(t: &Threads, warp: u32) -> Self {
        let stream = t.stream(warp);
        Self {
            stream,
            fenced_stream: stream + t.all_warps(),
            done: Own::default(),
            fenced: Own::default(),
        }
    }

    fn of(&self, thread: u32) -> Option<&Own> {
        match thread {
            t if t == self.stream => Some(&self.done),
            t if t == self.fenced_stream => Some(&self.fenced),
            _ => None,
        }
    }

    #[inline]
    fn knows(&self, lane: u8, m: &Moment) -> bool {
        self.of(m.thread).is_some_and(|own| own.knows(lane, m))
    }

    #[inline]
    fn all_know(&self, m: &Moment) -> bool {
        self.of(m.thread)
            .is_some_and(|own| own.all.covers(m.lane, m.clock))
    }

    fn sync(&mut self) {
        for own in [&mut self.done, &mut self.fenced] {
            own.all = own.told(Mask::MAX);
        }
    }

    fn tell(&self, lanes: Mask, into: &mut Clock) {
        into.warps[self.stream as usize].join(&self.done.told(lanes));
        into.warps[self.fenced_stream as usize].join(&self.fenced.told(lanes));
    }

    /// Some lanes have fenced their own copies.
    fn fence(&mut self, lanes: Mask) {
        self.fenced
            .learn(self.done.each.0 & lanes, self.done.each.1);
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
    /// What they know of the warp's own stream, if lanes copy by themselves.
    own: Option<Box<OwnStream>>,
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
            own: t.streams.then(|| Box::new(OwnStream::new(t, thread))),
        }
    }

    /// Does a lane know of a moment?
    #[inline]
    pub(crate) fn knows(&self, lane: u8, m: &Moment) -> bool {
        if m.thread == self.thread && (lane == ALL_LANES || lane == m.lane || m.clock < self.synced)
        {
            return true;
        }
        self.own.as_ref().is_some_and(|o| o.knows(lane, m))
            || self.known.knows(m)
            || self.some.as_ref().is_some_and(|(lanes, c)| {
                (lane == ALL_LANES || lanes >> lane & 1 == 1) && c.knows(m)
            })
    }

    /// Does every lane know of a moment?
    #[inline]
    pub(crate) fn all_know(&self, m: &Moment) -> bool {
        m.thread == self.thread && m.clock < self.synced
            || self.own.as_ref().is_some_and(|o| o.all_know(m))
            || self.known.knows(m)
    }

    /// Does a lane know of a moment of another cluster?
    pub(crate) fn knows_far(&self, lane: u8, cluster: u64, m: &Moment) -> bool {
        self.all_know_far(cluster, m)
            || self.some.as_ref().is_some_and(|(lanes, c)| {
                (lane == ALL_LANES || lanes >> lane & 1 == 1) && c.far.knows(cluster, m)
            })
    }

    /// Does every lane know of a moment of another cluster?
    pub(crate) fn all_know_far(&self, cluster: u64, m: &Moment) -> bool {
        self.known.far.knows(cluster, m)
    }

    /// All lanes meet: what one knows, all know.
    pub(crate) fn sync(&mut self) {
        if let Some((_, c)) = self.some.take() {
            self.known.join(&c);
        }
        if let Some(own) = &mut self.own {
            own.sync();
        }
        self.now += 1;
        self.synced = self.now;
    }

    /// Hands what some lanes know and did to a barrier, and starts a segment.
    pub(crate) fn release(&mut self, lanes: Mask, into: &mut Clock) {
        self.tell(lanes, into);
        self.now += 1;
    }

    /// What some lanes know of others.
    pub(crate) fn tell_known(&self, lanes: Mask, into: &mut Clock) {
        into.join(&self.known);
        if let Some((some, c)) = &self.some
            && some & lanes != 0
        {
            into.join(c);
        }
    }

    /// What some lanes know and did so far.
    pub(crate) fn tell(&self, lanes: Mask, into: &mut Clock) {
        self.tell_known(lanes, into);
        if let Some(own) = &self.own {
            own.tell(lanes, into);
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

    /// Each of some lanes learns that its own copies below a number are done.
    pub(crate) fn learn_copies(&mut self, lanes: Mask, past: u32) {
        if let Some(own) = &mut self.own {
            own.done.learn(lanes, past);
        }
    }

    /// Some lanes run a proxy fence: what they know of streams is fenced.
    pub(crate) fn fence_streams(&mut self, lanes: Mask) {
        let Some(mut own) = self.own.take() else {
            return;
        };
        let mut told = self.known.nothing();
        self.tell_known(lanes, &mut told);
        told.warps[own.stream as usize].join(&own.done.all);
        own.fence(lanes);
        let warps = told.warps.len() / 3;
        let known = self.knowing(lanes);
        for w in 0..warps {
            known.warps[2 * warps + w].join(&told.warps[warps + w]);
        }
        self.own = Some(own);
    }

    /// Does a lane know of a moment of a stream as fenced? Other threads need no such fence.
    pub(crate) fn is_fenced(&self, lane: u8, m: &Moment) -> bool {
        let Some(own) = &self.own else { return true };
        let warps = own.fenced_stream - own.stream;
        let fenced = Moment {
            thread: m.thread + warps,
            ..*m
        };
        !(warps..2 * warps).contains(&m.thread) || self.knows(lane, &fenced)
    }

    fn knowing(&mut self, lanes: Mask) -> &mut Clock {
        if lanes == Mask::MAX {
            return &mut self.known;
        }
        let known = &self.known;
        let (some, clock) = self.some.get_or_insert_with(|| (0, known.nothing()));
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
        streams: false,
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
            [2, 3, 4, 7]
        );
        assert_eq!([T.bulk_writes(0), T.bulk_writes(1)], [5, 6]);
    }

    const S: Threads = Threads { streams: true, ..T };

    /// A copy of a lane in the stream of warp 0.
    fn copied(lane: u8, clock: u32) -> Moment {
        let thread = S.stream(0);
        Moment {
            thread,
            lane,
            clock,
        }
    }

    #[test]
    fn a_lane_that_waits_knows_of_its_own_copies_until_the_warp_syncs() {
        let mut a = WarpClock::new(&S, 0);
        a.learn_copies(Mask::MAX, 3);
        assert!(a.knows(4, &copied(4, 2)) && !a.knows(4, &copied(4, 3)));
        assert!(!a.knows(5, &copied(4, 2)) && !a.all_know(&copied(4, 2)));
        a.sync();
        assert!(a.knows(5, &copied(4, 2)) && a.all_know(&copied(4, 2)));
    }

    #[test]
    fn an_elected_arrival_hands_on_its_own_copies_and_what_the_warp_synced() {
        let (mut a, mut b) = (WarpClock::new(&S, 0), WarpClock::new(&S, 1));
        a.learn_copies(Mask::MAX, 1);
        a.sync();
        a.learn_copies(Mask::MAX, 2);
        let mut bar = Clock::new(&S);
        a.release(1, &mut bar);
        b.acquire(Mask::MAX, &bar);
        assert!(b.knows(9, &copied(7, 0)) && b.knows(9, &copied(0, 1)));
        assert!(!b.knows(9, &copied(7, 1)));
    }

    #[test]
    fn a_fence_of_the_one_who_waited_or_of_the_one_who_was_told_will_do() {
        let (mut a, mut b) = (WarpClock::new(&S, 0), WarpClock::new(&S, 1));
        let pass = |from: &mut WarpClock, to: &mut WarpClock| {
            let mut bar = Clock::new(&S);
            from.release(Mask::MAX, &mut bar);
            to.acquire(Mask::MAX, &bar);
        };
        a.learn_copies(Mask::MAX, 1);
        assert!(!a.is_fenced(3, &copied(3, 0)));
        a.fence_streams(Mask::MAX);
        assert!(a.is_fenced(3, &copied(3, 0)) && !a.is_fenced(3, &copied(2, 0)));
        pass(&mut a, &mut b);
        assert!(b.is_fenced(3, &copied(2, 0)) && !b.is_fenced(3, &copied(2, 1)));
        a.learn_copies(Mask::MAX, 2);
        pass(&mut a, &mut b);
        assert!(b.knows(3, &copied(2, 1)) && !b.is_fenced(3, &copied(2, 1)));
        b.fence_streams(0b1000);
        assert!(b.is_fenced(3, &copied(2, 1)) && !b.is_fenced(4, &copied(2, 1)));
    }
}
