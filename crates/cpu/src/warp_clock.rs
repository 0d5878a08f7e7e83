//! The clocks of the lanes of one warp.
//!
//! One clock is common to all lanes. If only some lanes acquired a clock, it is kept separately with
//! the mask of those lanes until the lanes synchronize; the list is usually empty or has one entry.
//! The progress of each lane's own copies is one number per lane, grouped by equal numbers.

use crate::clock::{Clock, Epoch, Threads};
use warpline_ir::Mask;

/// The whole warp instead of one lane, for ops of the whole warp: the op is ordered after the
/// accesses and clocks of every lane.
pub(crate) const ALL_LANES: u8 = 32;

/// Returns the mask of a lane, or of all lanes.
pub(crate) fn mask_of(lane: u8) -> Mask {
    match lane {
        ALL_LANES => Mask::MAX,
        lane => 1 << lane,
    }
}

/// Clocks by lane mask.
#[derive(Clone, Default, Debug)]
pub(crate) struct ByLanes(Vec<(Mask, Clock)>);

impl ByLanes {
    /// Returns the clock of exactly these lanes, initially empty.
    pub(crate) fn of(&mut self, lanes: Mask, nothing: impl FnOnce() -> Clock) -> &mut Clock {
        let at = self.0.iter().position(|(of, _)| *of == lanes);
        let at = at.unwrap_or_else(|| {
            self.0.push((lanes, nothing()));
            self.0.len() - 1
        });
        &mut self.0[at].1
    }

    /// Joins a clock for some lanes.
    pub(crate) fn add(&mut self, lanes: Mask, clock: &Clock) {
        self.of(lanes, || clock.empty_like()).join(clock);
    }

    /// Iterates over the clocks of some of these lanes, with the lanes.
    pub(crate) fn any(&self, lanes: Mask) -> impl Iterator<Item = (Mask, &Clock)> {
        self.0
            .iter()
            .map(move |(of, c)| (of & lanes, c))
            .filter(|(of, _)| *of != 0)
    }
}

/// The completed copies of each lane, until the lanes synchronize.
#[derive(Clone, Debug)]
struct Own {
    /// The thread of the copies.
    thread: u32,
    /// For each mask: the lanes' copies below a number are complete. The masks are disjoint.
    each: Vec<(Mask, u32)>,
}

impl Own {
    /// Returns the lanes whose copy `clock` is complete.
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

/// The clocks of one warp, and its current segment.
#[derive(Clone, Debug)]
pub(crate) struct WarpClock {
    threads: Threads,
    /// The warp's own thread.
    pub(crate) thread: u32,
    /// The current segment.
    pub(crate) now: u32,
    /// The lanes are ordered with each other below this segment.
    synced: u32,
    /// The clock of all lanes.
    known: Clock,
    /// The clocks of some lanes, until they synchronize.
    some: ByLanes,
    /// The completed copies of each lane, by thread.
    own: Vec<Own>,
}

impl WarpClock {
    /// Creates the clock of a warp at its start.
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

    /// Whether an epoch happens before the current point of a lane.
    #[inline]
    pub(crate) fn has_seen(&self, lane: u8, m: &Epoch) -> bool {
        let asks = mask_of(lane);
        if m.thread == self.thread && (m.lanes & !asks == 0 || m.clock < self.synced) {
            return true;
        }
        self.known.has_seen(m) || self.some_have_seen(asks, m)
    }

    /// The same, including clocks of some lanes only.
    fn some_have_seen(&self, asks: Mask, m: &Epoch) -> bool {
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

    /// Whether an epoch happens before the current point of every lane.
    #[inline]
    pub(crate) fn all_have_seen(&self, m: &Epoch) -> bool {
        m.thread == self.thread && m.clock < self.synced || self.known.has_seen(m)
    }

    /// Whether an epoch of another cluster happens before the current point of a lane.
    pub(crate) fn has_seen_in_cluster(&self, lane: u8, cluster: u64, m: &Epoch) -> bool {
        self.all_have_seen_in_cluster(cluster, m)
            || self
                .some
                .any(mask_of(lane))
                .any(|(_, c)| c.other_clusters.has_seen(cluster, m))
    }

    /// Whether an epoch of another cluster happens before the current point of every lane.
    pub(crate) fn all_have_seen_in_cluster(&self, cluster: u64, m: &Epoch) -> bool {
        self.known.other_clusters.has_seen(cluster, m)
    }

    /// Synchronizes all lanes: joins their clocks.
    pub(crate) fn sync(&mut self) {
        for (_, c) in self.some.0.drain(..) {
            self.known.join(&c);
        }
        for own in self.own.drain(..) {
            for (lanes, past) in own.each {
                self.known.advance_lanes(own.thread, lanes, past);
            }
        }
        self.now += 1;
        self.synced = self.now;
    }

    /// Synchronizes some lanes: joins their clocks.
    pub(crate) fn sync_lanes(&mut self, lanes: Mask) {
        if lanes == Mask::MAX {
            return self.sync();
        }
        if lanes.is_power_of_two() {
            return;
        }
        let mut published = self.known.empty_like();
        self.release(lanes, &mut published);
        // The joined clock includes the clocks of these lanes only.
        self.some.0.retain(|(of, _)| of & !lanes != 0);
        self.acquire(lanes, &published);
    }

    /// Publishes the clocks of some lanes to a barrier, and starts a segment.
    pub(crate) fn release(&mut self, lanes: Mask, into: &mut Clock) {
        self.publish(lanes, into);
        self.now += 1;
    }

    /// Joins the clocks that some lanes acquired into `into`, without their own accesses.
    pub(crate) fn publish_acquired(&self, lanes: Mask, into: &mut Clock) {
        into.join(&self.known);
        for (_, c) in self.some.any(lanes) {
            into.join(c);
        }
    }

    /// Joins the clocks of some lanes into `into`, with their own accesses.
    pub(crate) fn publish(&self, lanes: Mask, into: &mut Clock) {
        self.publish_acquired(lanes, into);
        for own in &self.own {
            for (of, past) in &own.each {
                into.advance_lanes(own.thread, of & lanes, *past);
            }
        }
        into.advance_lanes(self.thread, Mask::MAX, self.synced);
        into.advance_lanes(self.thread, lanes, self.now + 1);
    }

    /// Acquires a clock for some lanes.
    pub(crate) fn acquire(&mut self, lanes: Mask, from: &Clock) {
        self.clock_of(lanes).join(from);
    }

    /// Advances an engine to a number, for some lanes.
    pub(crate) fn learn(&mut self, lanes: Mask, engine: u32, past: u32) {
        self.clock_of(lanes).learn(engine, past);
    }

    /// Records, for some lanes, that the lane's own copies below a number are complete.
    pub(crate) fn advance_own(&mut self, thread: u32, lanes: Mask, past: u32) {
        let at = self.own.iter().position(|o| o.thread == thread);
        let at = at.unwrap_or_else(|| {
            let each = Vec::new();
            self.own.push(Own { thread, each });
            self.own.len() - 1
        });
        self.own[at].learn(lanes, past);
    }

    /// Runs a proxy fence of some lanes: marks the stream numbers of some warps as fenced.
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
                self.advance_own(t.fenced(self.thread), of & lanes, past);
            }
        }
    }

    /// Whether an epoch of a stream is fenced for a lane. Other threads need no such fence.
    pub(crate) fn is_fenced(&self, lane: u8, m: &Epoch) -> bool {
        self.threads.warp_of_stream(m.thread).is_none_or(|warp| {
            let thread = self.threads.fenced(warp);
            self.has_seen(lane, &Epoch { thread, ..*m })
        })
    }

    fn clock_of(&mut self, lanes: Mask) -> &mut Clock {
        match lanes {
            Mask::MAX => &mut self.known,
            lanes => self.some.of(lanes, || self.known.empty_like()),
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

    fn did(w: &WarpClock, lane: u8) -> Epoch {
        Epoch {
            thread: w.thread,
            lanes: mask_of(lane),
            clock: w.now,
        }
    }

    #[test]
    fn an_elected_arrival_publishes_its_lane_and_the_synced_warp() {
        let (mut a, mut b) = (WarpClock::new(&T, 0), WarpClock::new(&T, 1));
        let before = did(&a, 7);
        a.sync();
        let (own, others) = (did(&a, 0), did(&a, 7));
        let mut bar = Clock::new(&T);
        a.release(1, &mut bar);
        let after = did(&a, 0);
        b.acquire(Mask::MAX, &bar);
        assert!(b.has_seen(3, &before) && b.has_seen(3, &own));
        assert!(!b.has_seen(3, &others) && !b.has_seen(3, &after));
    }

    #[test]
    fn a_sync_joins_the_clock_of_one_lane_into_the_warp() {
        let (mut a, mut b) = (WarpClock::new(&T, 0), WarpClock::new(&T, 1));
        let x = did(&a, 4);
        let mut bar = Clock::new(&T);
        a.release(Mask::MAX, &mut bar);
        b.acquire(1, &bar);
        assert!(b.has_seen(0, &x) && !b.has_seen(1, &x));
        b.sync();
        assert!(b.has_seen(1, &x));
    }

    #[test]
    fn lanes_are_ordered_only_after_a_sync() {
        let mut a = WarpClock::new(&T, 0);
        let x = did(&a, 4);
        assert!(a.has_seen(4, &x) && !a.has_seen(5, &x) && a.has_seen(ALL_LANES, &x));
        a.sync();
        assert!(a.has_seen(5, &x));
    }

    #[test]
    fn engines_have_one_number() {
        let mut a = WarpClock::new(&T, 0);
        let phase = |clock| Epoch {
            thread: T.barrier(0, 0),
            lanes: Mask::MAX,
            clock,
        };
        a.learn(Mask::MAX, T.barrier(0, 0), 2);
        assert!(a.has_seen(0, &phase(1)) && !a.has_seen(0, &phase(2)));
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
            [5, 6, 7, 8].map(|t| all.warp_of_stream(t)),
            [None, Some(0), Some(1), None]
        );
    }

    const S: Threads = Threads { streams: true, ..T };

    /// Returns the epoch of a lane's copy in the stream of warp 0.
    fn copied(lane: u8, clock: u32) -> Epoch {
        Epoch {
            thread: S.stream(0),
            lanes: 1 << lane,
            clock,
        }
    }

    #[test]
    fn a_wait_covers_the_lane_s_own_copies_until_the_warp_syncs() {
        let mut a = WarpClock::new(&S, 0);
        a.advance_own(S.stream(0), Mask::MAX, 3);
        assert!(a.has_seen(4, &copied(4, 2)) && !a.has_seen(4, &copied(4, 3)));
        assert!(!a.has_seen(5, &copied(4, 2)) && !a.all_have_seen(&copied(4, 2)));
        a.sync();
        assert!(a.has_seen(5, &copied(4, 2)) && a.all_have_seen(&copied(4, 2)));
    }

    #[test]
    fn an_elected_arrival_publishes_its_own_and_the_synced_copies() {
        let (mut a, mut b) = (WarpClock::new(&S, 0), WarpClock::new(&S, 1));
        a.advance_own(S.stream(0), Mask::MAX, 1);
        a.sync();
        a.advance_own(S.stream(0), Mask::MAX, 2);
        let mut bar = Clock::new(&S);
        a.release(1, &mut bar);
        b.acquire(Mask::MAX, &bar);
        assert!(b.has_seen(9, &copied(7, 0)) && b.has_seen(9, &copied(0, 1)));
        assert!(!b.has_seen(9, &copied(7, 1)));
    }

    #[test]
    fn a_fence_of_the_waiting_or_of_the_acquiring_thread_suffices() {
        let (mut a, mut b) = (WarpClock::new(&S, 0), WarpClock::new(&S, 1));
        let pass = |from: &mut WarpClock, to: &mut WarpClock| {
            let mut bar = Clock::new(&S);
            from.release(Mask::MAX, &mut bar);
            to.acquire(Mask::MAX, &bar);
        };
        a.advance_own(S.stream(0), Mask::MAX, 1);
        assert!(!a.is_fenced(3, &copied(3, 0)));
        a.fence_streams(Mask::MAX, 0..2);
        assert!(a.is_fenced(3, &copied(3, 0)) && !a.is_fenced(3, &copied(2, 0)));
        pass(&mut a, &mut b);
        assert!(b.is_fenced(3, &copied(2, 0)) && !b.is_fenced(3, &copied(2, 1)));
        a.advance_own(S.stream(0), Mask::MAX, 2);
        pass(&mut a, &mut b);
        assert!(b.has_seen(3, &copied(2, 1)) && !b.is_fenced(3, &copied(2, 1)));
        b.fence_streams(0b1000, 0..2);
        assert!(b.is_fenced(3, &copied(2, 1)) && !b.is_fenced(4, &copied(2, 1)));
    }

    #[test]
    fn each_lane_has_its_own_waits() {
        let mut a = WarpClock::new(&S, 0);
        a.advance_own(S.stream(0), 0b01, 2);
        a.advance_own(S.stream(0), 0b10, 5);
        assert!(a.has_seen(0, &copied(0, 1)) && !a.has_seen(0, &copied(0, 4)));
        assert!(a.has_seen(1, &copied(1, 4)) && !a.has_seen(1, &copied(0, 1)));
        let mut bar = Clock::new(&S);
        a.release(0b01, &mut bar);
        assert!(bar.has_seen(&copied(0, 1)) && !bar.has_seen(&copied(1, 1)));
    }

    #[test]
    fn separate_waits_of_two_lanes_stay_separate() {
        let mut warps = [0, 1].map(|t| WarpClock::new(&T, t));
        let [a, b] = &mut warps;
        let (mut first, mut second) = (Clock::new(&T), Clock::new(&T));
        let x = did(a, 3);
        a.release(1 << 3, &mut first);
        let y = did(a, 4);
        a.release(1 << 4, &mut second);
        b.acquire(0b01, &first);
        b.acquire(0b10, &second);
        assert!(b.has_seen(0, &x) && !b.has_seen(0, &y));
        assert!(b.has_seen(1, &y) && !b.has_seen(1, &x));
        b.sync_lanes(0b101);
        assert!(b.has_seen(2, &x) && !b.has_seen(2, &y) && !b.has_seen(1, &x));
        b.sync();
        assert!(b.has_seen(7, &x) && b.has_seen(7, &y));
    }

    #[test]
    fn a_partial_sync_orders_only_its_lanes() {
        let mut a = WarpClock::new(&T, 0);
        let (x, y) = (did(&a, 0), did(&a, 9));
        a.sync_lanes(0b11);
        assert!(a.has_seen(1, &x) && !a.has_seen(1, &y) && !a.has_seen(2, &x));
        // An arrival of one of them publishes that.
        let mut bar = Clock::new(&T);
        a.release(0b10, &mut bar);
        assert!(bar.has_seen(&x) && !bar.has_seen(&y));
    }

    #[test]
    fn joined_clocks_are_exact() {
        let at = |lanes, clock| Epoch {
            thread: 1,
            lanes,
            clock,
        };
        let mut c = Clock::new(&T);
        c.advance_lanes(1, 0b0001, 9);
        c.advance_lanes(1, 0b0110, 5);
        c.advance_lanes(1, 0b1000, 7);
        let mut d = Clock::new(&T);
        d.advance_lanes(1, 0b0010, 8);
        d.join(&c);
        for c in [&c, &d] {
            assert!(c.has_seen(&at(0b0001, 8)) && c.has_seen(&at(0b1111, 4)));
            assert!(!c.has_seen(&at(0b0100, 5)) && !c.has_seen(&at(0b1001, 7)));
            assert!(c.has_seen(&at(0b1001, 6)) && !c.has_seen(&at(0b10000, 0)));
        }
        assert!(d.has_seen(&at(0b0011, 7)) && !c.has_seen(&at(0b0011, 7)));
        d.advance_lanes(1, Mask::MAX, 9);
        assert!(d.has_seen(&at(Mask::MAX, 8)));
    }
}
