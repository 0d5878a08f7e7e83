//! What the lanes of one warp know.
//!
//! One clock holds what every lane knows. What only some lanes know, since one
//! of them waited, is kept beside it with the mask of those lanes, until the
//! lanes meet: nearly always the list is empty or has one entry. What each lane
//! knows of its own copies is a number per lane, kept in runs of equal ones.

use crate::clock::{Clock, Moment, Threads};
use warpline_ir::Mask;

/// Not one lane but the whole warp, in an op that its lanes run together: what
/// one of them did or knows comes before it.
pub(crate) const ALL_LANES: u8 = 32;

/// The mask of a lane, or of all.
pub(crate) fn mask_of(lane: u8) -> Mask {
    match lane {
        ALL_LANES => Mask::MAX,
        lane => 1 << lane,
    }
}

/// Clocks of some lanes each.
#[derive(Clone, Default, Debug)]
pub(crate) struct ByLanes(Vec<(Mask, Clock)>);

impl ByLanes {
    /// The clock of exactly these lanes; it starts with nothing.
    pub(crate) fn of(&mut self, lanes: Mask, nothing: impl FnOnce() -> Clock) -> &mut Clock {
        let at = self.0.iter().position(|(of, _)| *of == lanes);
        let at = at.unwrap_or_else(|| {
            self.0.push((lanes, nothing()));
            self.0.len() - 1
        });
        &mut self.0[at].1
    }

    /// Adds a clock for some lanes.
    pub(crate) fn add(&mut self, lanes: Mask, clock: &Clock) {
        self.of(lanes, || clock.nothing()).join(clock);
    }

    /// The clocks that some of these lanes have, and which of the lanes do.
    pub(crate) fn any(&self, lanes: Mask) -> impl Iterator<Item = (Mask, &Clock)> {
        self.0
            .iter()
            .map(move |(of, c)| (of & lanes, c))
            .filter(|(of, _)| *of != 0)
    }
}

/// What each lane of a warp knows of its own copies, until the lanes meet.
#[derive(Clone, Debug)]
struct Own {
    /// The thread of the copies.
    thread: u32,
    /// The lanes of a mask know of their own copies below a number; no lane is in two masks.
    each: Vec<(Mask, u32)>,
}

impl Own {
    /// The lanes that know of their own copies past a number.
    fn covered(&self, clock: u32) -> Mask {
        let past = self.each.iter().filter(|e| clock < e.1);
        past.fold(0, |m, e| m | e.0)
    }

    fn learn(&mut self, mut lanes: Mask, past: u32) {
        self.each.retain_mut(|e| {
            match e.1 >= past {
                true => lanes &= !e.0,
                false => e.0 &= !lanes,
            }
            e.0 != 0
        });
        if lanes != 0 {
            self.each.push((lanes, past));
        }
    }
}

/// What one warp knows, and how far it is itself.
#[derive(Clone, Debug)]
pub(crate) struct WarpClock {
    threads: Threads,
    /// The warp's own thread.
    pub(crate) thread: u32,
    /// The current segment.
    pub(crate) now: u32,
    /// The lanes know of each other's segments below this one.
    synced: u32,
    /// What every lane knows.
    known: Clock,
    /// What only some lanes know, until they meet.
    some: ByLanes,
    /// What each knows of its own copies; a thread without has no entry.
    own: Vec<Own>,
}

impl WarpClock {
    /// A warp at its start.
    pub(crate) fn new(t: &Threads, thread: u32) -> Self {
        Self {
            threads: *t,
            thread,
            now: 1,
            synced: 1,
            known: Clock::new(t),
            some: ByLanes::default(),
            own: Vec::new(),
        }
    }

    /// Does a lane know of a moment?
    #[inline]
    pub(crate) fn knows(&self, lane: u8, m: &Moment) -> bool {
        let asks = mask_of(lane);
        if m.thread == self.thread && (m.lanes & !asks == 0 || m.clock < self.synced) {
            return true;
        }
        self.known.knows(m) || self.some_know(asks, m)
    }

    /// Does a lane know of a moment through what not all lanes know?
    fn some_know(&self, asks: Mask, m: &Moment) -> bool {
        if self.some.0.is_empty() && self.own.is_empty() && m.thread != self.thread {
            return false;
        }
        let itself = if m.thread == self.thread { asks } else { 0 };
        let own = self.own.iter().filter(|o| o.thread == m.thread);
        let own = own.fold(0, |all, o| all | o.covered(m.clock) & asks);
        let some = self.some.any(asks);
        let some = some.fold(0, |all, (_, c)| all | c.covered(m.thread, m.clock));
        let known = self.known.covered(m.thread, m.clock);
        m.lanes & !(itself | own | some | known) == 0
    }

    /// Does every lane know of a moment?
    #[inline]
    pub(crate) fn all_know(&self, m: &Moment) -> bool {
        m.thread == self.thread && m.clock < self.synced || self.known.knows(m)
    }

    /// Does a lane know of a moment of another cluster?
    pub(crate) fn knows_far(&self, lane: u8, cluster: u64, m: &Moment) -> bool {
        self.all_know_far(cluster, m)
            || self
                .some
                .any(mask_of(lane))
                .any(|(_, c)| c.far.knows(cluster, m))
    }

    /// Does every lane know of a moment of another cluster?
    pub(crate) fn all_know_far(&self, cluster: u64, m: &Moment) -> bool {
        self.known.far.knows(cluster, m)
    }

    /// All lanes meet: what one knows, all know.
    pub(crate) fn sync(&mut self) {
        for (_, c) in self.some.0.drain(..) {
            self.known.join(&c);
        }
        for own in self.own.drain(..) {
            for (lanes, past) in own.each {
                self.known.know(own.thread, lanes, past);
            }
        }
        self.now += 1;
        self.synced = self.now;
    }

    /// Some lanes meet: what one of them did or knows, all of them know.
    pub(crate) fn sync_lanes(&mut self, lanes: Mask) {
        if lanes == Mask::MAX {
            return self.sync();
        }
        if lanes.is_power_of_two() {
            return;
        }
        let mut told = self.known.nothing();
        self.release(lanes, &mut told);
        // What none but they know is part of it.
        self.some.0.retain(|(of, _)| of & !lanes != 0);
        self.acquire(lanes, &told);
    }

    /// Hands what some lanes know and did to a barrier, and starts a segment.
    pub(crate) fn release(&mut self, lanes: Mask, into: &mut Clock) {
        self.tell(lanes, into);
        self.now += 1;
    }

    /// What some lanes know of others.
    pub(crate) fn tell_known(&self, lanes: Mask, into: &mut Clock) {
        into.join(&self.known);
        for (_, c) in self.some.any(lanes) {
            into.join(c);
        }
    }

    /// What some lanes know and did so far.
    pub(crate) fn tell(&self, lanes: Mask, into: &mut Clock) {
        self.tell_known(lanes, into);
        for own in &self.own {
            for (of, past) in &own.each {
                into.know(own.thread, of & lanes, *past);
            }
        }
        into.know(self.thread, Mask::MAX, self.synced);
        into.know(self.thread, lanes, self.now + 1);
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
    pub(crate) fn learn_own(&mut self, thread: u32, lanes: Mask, past: u32) {
        let at = self.own.iter().position(|o| o.thread == thread);
        let at = at.unwrap_or_else(|| {
            let each = Vec::new();
            self.own.push(Own { thread, each });
            self.own.len() - 1
        });
        self.own[at].learn(lanes, past);
    }

    /// Some lanes run a proxy fence: what each knows of the streams of some
    /// warps is fenced.
    pub(crate) fn fence_streams(&mut self, lanes: Mask, warps: std::ops::Range<u32>) {
        let t = self.threads;
        if !t.streams {
            return;
        }
        let mut fenced = ByLanes::default();
        fenced.add(lanes, &self.known);
        for (of, c) in self.some.any(lanes) {
            fenced.add(of, c);
        }
        for (of, mut c) in fenced.0 {
            c.fence_streams(&t, &warps);
            self.acquire(of, &c);
        }
        let stream = t.stream(self.thread);
        let own = self.own.iter().find(|o| o.thread == stream);
        for (of, past) in own.map_or(Vec::new(), |o| o.each.clone()) {
            if of & lanes != 0 {
                self.learn_own(t.fenced(self.thread), of & lanes, past);
            }
        }
    }

    /// Does a lane know of a moment of a stream as fenced? Other threads need no such fence.
    pub(crate) fn is_fenced(&self, lane: u8, m: &Moment) -> bool {
        self.threads.streaming(m.thread).is_none_or(|warp| {
            let thread = self.threads.fenced(warp);
            self.knows(lane, &Moment { thread, ..*m })
        })
    }

    fn knowing(&mut self, lanes: Mask) -> &mut Clock {
        match lanes {
            Mask::MAX => &mut self.known,
            lanes => self.some.of(lanes, || self.known.nothing()),
        }
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
        bulks: false,
    };

    fn did(w: &WarpClock, lane: u8) -> Moment {
        Moment {
            thread: w.thread,
            lanes: mask_of(lane),
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
            lanes: Mask::MAX,
            clock,
        };
        a.learn(Mask::MAX, T.barrier(0, 0), 2);
        assert!(a.knows(0, &phase(1)) && !a.knows(0, &phase(2)));
        assert_eq!([T.barrier(0, 0), T.wgmma(1)], [2, 3]);
        let all = Threads {
            streams: true,
            bulks: true,
            ..T
        };
        assert_eq!([all.bulk(1), all.bulk_writes(1)], [3, 5]);
        assert_eq!([all.stream(1), all.fenced(1)], [7, 9]);
        assert_eq!([all.barrier(0, 0), all.wgmma(0)], [10, 11]);
        assert_eq!(
            [5, 6, 7, 8].map(|t| all.streaming(t)),
            [None, Some(0), Some(1), None]
        );
    }

    const S: Threads = Threads { streams: true, ..T };

    /// A copy of a lane in the stream of warp 0.
    fn copied(lane: u8, clock: u32) -> Moment {
        Moment {
            thread: S.stream(0),
            lanes: 1 << lane,
            clock,
        }
    }

    #[test]
    fn a_lane_that_waits_knows_of_its_own_copies_until_the_warp_syncs() {
        let mut a = WarpClock::new(&S, 0);
        a.learn_own(S.stream(0), Mask::MAX, 3);
        assert!(a.knows(4, &copied(4, 2)) && !a.knows(4, &copied(4, 3)));
        assert!(!a.knows(5, &copied(4, 2)) && !a.all_know(&copied(4, 2)));
        a.sync();
        assert!(a.knows(5, &copied(4, 2)) && a.all_know(&copied(4, 2)));
    }

    #[test]
    fn an_elected_arrival_hands_on_its_own_copies_and_what_the_warp_synced() {
        let (mut a, mut b) = (WarpClock::new(&S, 0), WarpClock::new(&S, 1));
        a.learn_own(S.stream(0), Mask::MAX, 1);
        a.sync();
        a.learn_own(S.stream(0), Mask::MAX, 2);
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
        a.learn_own(S.stream(0), Mask::MAX, 1);
        assert!(!a.is_fenced(3, &copied(3, 0)));
        a.fence_streams(Mask::MAX, 0..2);
        assert!(a.is_fenced(3, &copied(3, 0)) && !a.is_fenced(3, &copied(2, 0)));
        pass(&mut a, &mut b);
        assert!(b.is_fenced(3, &copied(2, 0)) && !b.is_fenced(3, &copied(2, 1)));
        a.learn_own(S.stream(0), Mask::MAX, 2);
        pass(&mut a, &mut b);
        assert!(b.knows(3, &copied(2, 1)) && !b.is_fenced(3, &copied(2, 1)));
        b.fence_streams(0b1000, 0..2);
        assert!(b.is_fenced(3, &copied(2, 1)) && !b.is_fenced(4, &copied(2, 1)));
    }

    #[test]
    fn each_lane_knows_what_it_waited_for() {
        let mut a = WarpClock::new(&S, 0);
        a.learn_own(S.stream(0), 0b01, 2);
        a.learn_own(S.stream(0), 0b10, 5);
        assert!(a.knows(0, &copied(0, 1)) && !a.knows(0, &copied(0, 4)));
        assert!(a.knows(1, &copied(1, 4)) && !a.knows(1, &copied(0, 1)));
        let mut bar = Clock::new(&S);
        a.release(0b01, &mut bar);
        assert!(bar.knows(&copied(0, 1)) && !bar.knows(&copied(1, 1)));
    }

    #[test]
    fn what_two_lanes_learn_apart_stays_apart() {
        let mut warps = [0, 1].map(|t| WarpClock::new(&T, t));
        let [a, b] = &mut warps;
        let (mut first, mut second) = (Clock::new(&T), Clock::new(&T));
        let x = did(a, 3);
        a.release(1 << 3, &mut first);
        let y = did(a, 4);
        a.release(1 << 4, &mut second);
        b.acquire(0b01, &first);
        b.acquire(0b10, &second);
        assert!(b.knows(0, &x) && !b.knows(0, &y));
        assert!(b.knows(1, &y) && !b.knows(1, &x));
        b.sync_lanes(0b101);
        assert!(b.knows(2, &x) && !b.knows(2, &y) && !b.knows(1, &x));
        b.sync();
        assert!(b.knows(7, &x) && b.knows(7, &y));
    }

    #[test]
    fn lanes_that_meet_know_of_each_other_and_of_no_others() {
        let mut a = WarpClock::new(&T, 0);
        let (x, y) = (did(&a, 0), did(&a, 9));
        a.sync_lanes(0b11);
        assert!(a.knows(1, &x) && !a.knows(1, &y) && !a.knows(2, &x));
        // An arrival of one of them hands that on.
        let mut bar = Clock::new(&T);
        a.release(0b10, &mut bar);
        assert!(bar.knows(&x) && !bar.knows(&y));
    }

    #[test]
    fn joined_clocks_claim_no_more_than_both() {
        let at = |lanes, clock| Moment {
            thread: 1,
            lanes,
            clock,
        };
        let mut c = Clock::new(&T);
        c.know(1, 0b0001, 9);
        c.know(1, 0b0110, 5);
        c.know(1, 0b1000, 7);
        let mut d = Clock::new(&T);
        d.know(1, 0b0010, 8);
        d.join(&c);
        for c in [&c, &d] {
            assert!(c.knows(&at(0b0001, 8)) && c.knows(&at(0b1111, 4)));
            assert!(!c.knows(&at(0b0100, 5)) && !c.knows(&at(0b1001, 7)));
            assert!(c.knows(&at(0b1001, 6)) && !c.knows(&at(0b10000, 0)));
        }
        assert!(d.knows(&at(0b0011, 7)) && !c.knows(&at(0b0011, 7)));
        d.know(1, Mask::MAX, 9);
        assert!(d.knows(&at(Mask::MAX, 8)));
    }
}
