//! The clocks of the lanes of one warp.
//!
//! One clock is common to all lanes. A clock that only some lanes acquired stays separate, with the
//! mask of those lanes, until the lanes synchronize; the list is usually empty or has one entry.
//! The progress of each lane's own copies is one number per lane; lanes with equal numbers share an
//! entry.

use crate::clock::{Clock, Epoch, Threads};
use warpline_ir::Mask;

/// The lane number that stands for the whole warp: an op of the whole warp is ordered after the
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
pub(crate) struct ClocksByLanes(Vec<(Mask, Clock)>);

impl ClocksByLanes {
    /// Returns the clock of exactly these lanes; creates it with `empty`.
    pub(crate) fn entry(&mut self, lanes: Mask, empty: impl FnOnce() -> Clock) -> &mut Clock {
        let index = self.0.iter().position(|(of, _)| *of == lanes);
        let index = index.unwrap_or_else(|| {
            self.0.push((lanes, empty()));
            self.0.len() - 1
        });
        &mut self.0[index].1
    }

    /// Joins a clock for some lanes.
    pub(crate) fn add(&mut self, lanes: Mask, clock: &Clock) {
        self.entry(lanes, || clock.empty_like()).join(clock);
    }

    /// Iterates over the clocks that belong to some of `lanes`, each with its lanes among them.
    pub(crate) fn overlapping(&self, lanes: Mask) -> impl Iterator<Item = (Mask, &Clock)> {
        self.0
            .iter()
            .map(move |(of, c)| (of & lanes, c))
            .filter(|(of, _)| *of != 0)
    }
}

/// The completed copies of each lane, until the lanes synchronize.
#[derive(Clone, Debug)]
struct CompletedCopies {
    /// The thread of the copies.
    thread: u32,
    /// For each mask of lanes: their copies below the number are complete. The masks are disjoint.
    ends: Vec<(Mask, u32)>,
}

impl CompletedCopies {
    /// Returns the lanes whose copy with the number `clock` is complete.
    fn covered_lanes(&self, clock: u32) -> Mask {
        let end = self.ends.iter().filter(|e| clock < e.1);
        end.fold(0, |m, e| m | e.0)
    }

    fn advance(&mut self, mut lanes: Mask, end: u32) {
        self.ends.retain_mut(|e| {
            match e.1 >= end {
                true => lanes &= !e.0,
                false => e.0 &= !lanes,
            }
            e.0 != 0
        });
        if lanes != 0 {
            self.ends.push((lanes, end));
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
    /// The clock that all lanes share.
    common: Clock,
    /// The clocks of some lanes, until they synchronize.
    partial: ClocksByLanes,
    /// The completed copies of each lane, by thread.
    own_copies: Vec<CompletedCopies>,
}

impl WarpClock {
    /// Creates the clock of a warp at its start.
    pub(crate) fn new(t: &Threads, thread: u32) -> Self {
        Self {
            threads: *t,
            thread,
            now: 1,
            synced: 1,
            common: Clock::new(t),
            partial: ClocksByLanes::default(),
            own_copies: Vec::new(),
        }
    }

    /// Whether an epoch happens before the current point of a lane.
    #[inline]
    pub(crate) fn has_seen(&self, lane: u8, m: &Epoch) -> bool {
        let lanes = mask_of(lane);
        if m.thread == self.thread && (m.lanes & !lanes == 0 || m.clock < self.synced) {
            return true;
        }
        self.common.has_seen(m) || self.some_have_seen(lanes, m)
    }

    /// Whether an epoch happens before the current point of `lanes`, with the clocks and copies of
    /// single lanes included.
    fn some_have_seen(&self, lanes: Mask, m: &Epoch) -> bool {
        if self.partial.0.is_empty() && self.own_copies.is_empty() && m.thread != self.thread {
            return false;
        }
        let itself = if m.thread == self.thread { lanes } else { 0 };
        let own = self.own_copies.iter().filter(|o| o.thread == m.thread);
        let own = own.fold(0, |all, o| all | o.covered_lanes(m.clock) & lanes);
        let some = self.partial.overlapping(lanes);
        let some = some.fold(0, |all, (_, c)| all | c.covered_lanes(m.thread, m.clock));
        let known = self.common.covered_lanes(m.thread, m.clock);
        m.lanes & !(itself | own | some | known) == 0
    }

    /// Whether an epoch happens before the current point of every lane.
    #[inline]
    pub(crate) fn all_have_seen(&self, m: &Epoch) -> bool {
        m.thread == self.thread && m.clock < self.synced || self.common.has_seen(m)
    }

    /// Whether an epoch of another cluster happens before the current point of a lane.
    pub(crate) fn has_seen_in_cluster(&self, lane: u8, cluster: u64, m: &Epoch) -> bool {
        self.all_have_seen_in_cluster(cluster, m)
            || self
                .partial
                .overlapping(mask_of(lane))
                .any(|(_, c)| c.other_clusters.has_seen(cluster, m))
    }

    /// Whether an epoch of another cluster happens before the current point of every lane.
    pub(crate) fn all_have_seen_in_cluster(&self, cluster: u64, m: &Epoch) -> bool {
        self.common.other_clusters.has_seen(cluster, m)
    }

    /// Synchronizes all lanes: joins their clocks.
    pub(crate) fn sync(&mut self) {
        for (_, c) in self.partial.0.drain(..) {
            self.common.join(&c);
        }
        for own in self.own_copies.drain(..) {
            for (lanes, end) in own.ends {
                self.common.advance_lanes(own.thread, lanes, end);
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
        let mut published = self.common.empty_like();
        self.release(lanes, &mut published);
        // The joined clock includes the clocks of these lanes only.
        self.partial.0.retain(|(of, _)| of & !lanes != 0);
        self.acquire(lanes, &published);
    }

    /// Joins the clocks of some lanes into `target`, and starts a new segment.
    pub(crate) fn release(&mut self, lanes: Mask, target: &mut Clock) {
        self.publish(lanes, target);
        self.now += 1;
    }

    /// Joins the clocks that some lanes acquired into `target`, without their own accesses.
    pub(crate) fn publish_acquired(&self, lanes: Mask, target: &mut Clock) {
        target.join(&self.common);
        for (_, c) in self.partial.overlapping(lanes) {
            target.join(c);
        }
    }

    /// Joins the clocks of some lanes into `target`, with their own accesses.
    pub(crate) fn publish(&self, lanes: Mask, target: &mut Clock) {
        self.publish_acquired(lanes, target);
        for own in &self.own_copies {
            for (of, end) in &own.ends {
                target.advance_lanes(own.thread, of & lanes, *end);
            }
        }
        target.advance_lanes(self.thread, Mask::MAX, self.synced);
        target.advance_lanes(self.thread, lanes, self.now + 1);
    }

    /// Acquires a clock for some lanes.
    pub(crate) fn acquire(&mut self, lanes: Mask, from: &Clock) {
        self.clock_of(lanes).join(from);
    }

    /// Includes the numbers of an engine below `end`, for some lanes.
    pub(crate) fn advance_engine(&mut self, lanes: Mask, engine: u32, end: u32) {
        self.clock_of(lanes).advance_engine(engine, end);
    }

    /// Records that the own copies of some lanes below `end` are complete.
    pub(crate) fn advance_own_copies(&mut self, thread: u32, lanes: Mask, end: u32) {
        let index = self.own_copies.iter().position(|o| o.thread == thread);
        let index = index.unwrap_or_else(|| {
            let ends = Vec::new();
            self.own_copies.push(CompletedCopies { thread, ends });
            self.own_copies.len() - 1
        });
        self.own_copies[index].advance(lanes, end);
    }

    /// Runs a proxy fence of some lanes: marks the copy streams of some warps as fenced.
    pub(crate) fn fence_streams(&mut self, lanes: Mask, warps: std::ops::Range<u32>) {
        let t = self.threads;
        if !t.has_copy_streams {
            return;
        }
        let mut fenced = ClocksByLanes::default();
        fenced.add(lanes, &self.common);
        for (of, c) in self.partial.overlapping(lanes) {
            fenced.add(of, c);
        }
        for (of, mut c) in fenced.0 {
            c.fence_streams(&t, &warps);
            self.acquire(of, &c);
        }
        let stream = t.copy_stream(self.thread);
        let own = self.own_copies.iter().find(|o| o.thread == stream);
        for (of, end) in own.map_or(Vec::new(), |o| o.ends.clone()) {
            if of & lanes != 0 {
                self.advance_own_copies(t.fenced_copy_stream(self.thread), of & lanes, end);
            }
        }
    }

    /// Whether an epoch of a copy stream is fenced for a lane; true for all other threads.
    pub(crate) fn is_fenced(&self, lane: u8, m: &Epoch) -> bool {
        self.threads
            .warp_of_copy_stream(m.thread)
            .is_none_or(|warp| {
                let thread = self.threads.fenced_copy_stream(warp);
                self.has_seen(lane, &Epoch { thread, ..*m })
            })
    }

    fn clock_of(&mut self, lanes: Mask) -> &mut Clock {
        match lanes {
            Mask::MAX => &mut self.common,
            lanes => self.partial.entry(lanes, || self.common.empty_like()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: Threads = Threads {
        ctas: 1,
        warps_per_cta: 2,
        mbarriers_per_cta: 1,
        has_copy_streams: false,
        has_bulk_groups: false,
    };

    fn current_epoch(w: &WarpClock, lane: u8) -> Epoch {
        Epoch {
            thread: w.thread,
            lanes: mask_of(lane),
            clock: w.now,
        }
    }

    #[test]
    fn an_elected_arrival_publishes_its_lane_and_the_synced_warp() {
        let (mut a, mut b) = (WarpClock::new(&T, 0), WarpClock::new(&T, 1));
        let before = current_epoch(&a, 7);
        a.sync();
        let (own, others) = (current_epoch(&a, 0), current_epoch(&a, 7));
        let mut bar = Clock::new(&T);
        a.release(1, &mut bar);
        let after = current_epoch(&a, 0);
        b.acquire(Mask::MAX, &bar);
        assert!(b.has_seen(3, &before) && b.has_seen(3, &own));
        assert!(!b.has_seen(3, &others) && !b.has_seen(3, &after));
    }

    #[test]
    fn a_sync_joins_the_clock_of_one_lane_into_the_warp() {
        let (mut a, mut b) = (WarpClock::new(&T, 0), WarpClock::new(&T, 1));
        let x = current_epoch(&a, 4);
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
        let x = current_epoch(&a, 4);
        assert!(a.has_seen(4, &x) && !a.has_seen(5, &x) && a.has_seen(ALL_LANES, &x));
        a.sync();
        assert!(a.has_seen(5, &x));
    }

    #[test]
    fn engines_are_numbered_after_the_per_lane_threads() {
        let mut a = WarpClock::new(&T, 0);
        let phase = |clock| Epoch {
            thread: T.barrier(0, 0),
            lanes: Mask::MAX,
            clock,
        };
        a.advance_engine(Mask::MAX, T.barrier(0, 0), 2);
        assert!(a.has_seen(0, &phase(1)) && !a.has_seen(0, &phase(2)));
        assert_eq!([T.barrier(0, 0), T.wgmma(1)], [2, 3]);
        let all = Threads {
            has_copy_streams: true,
            has_bulk_groups: true,
            ..T
        };
        assert_eq!([all.bulk_reads(1), all.bulk_writes(1)], [3, 5]);
        assert_eq!([all.copy_stream(1), all.fenced_copy_stream(1)], [7, 9]);
        assert_eq!([all.barrier(0, 0), all.wgmma(0)], [10, 11]);
        assert_eq!(
            [5, 6, 7, 8].map(|t| all.warp_of_copy_stream(t)),
            [None, Some(0), Some(1), None]
        );
    }

    const S: Threads = Threads {
        has_copy_streams: true,
        ..T
    };

    /// Returns the epoch of a lane's copy in the copy stream of warp 0.
    fn copy_epoch(lane: u8, clock: u32) -> Epoch {
        Epoch {
            thread: S.copy_stream(0),
            lanes: 1 << lane,
            clock,
        }
    }

    #[test]
    fn a_copy_wait_orders_only_its_lane_until_the_warp_syncs() {
        let mut a = WarpClock::new(&S, 0);
        a.advance_own_copies(S.copy_stream(0), Mask::MAX, 3);
        assert!(a.has_seen(4, &copy_epoch(4, 2)) && !a.has_seen(4, &copy_epoch(4, 3)));
        assert!(!a.has_seen(5, &copy_epoch(4, 2)) && !a.all_have_seen(&copy_epoch(4, 2)));
        a.sync();
        assert!(a.has_seen(5, &copy_epoch(4, 2)) && a.all_have_seen(&copy_epoch(4, 2)));
    }

    #[test]
    fn an_elected_arrival_publishes_its_own_and_the_synced_copies() {
        let (mut a, mut b) = (WarpClock::new(&S, 0), WarpClock::new(&S, 1));
        a.advance_own_copies(S.copy_stream(0), Mask::MAX, 1);
        a.sync();
        a.advance_own_copies(S.copy_stream(0), Mask::MAX, 2);
        let mut bar = Clock::new(&S);
        a.release(1, &mut bar);
        b.acquire(Mask::MAX, &bar);
        assert!(b.has_seen(9, &copy_epoch(7, 0)) && b.has_seen(9, &copy_epoch(0, 1)));
        assert!(!b.has_seen(9, &copy_epoch(7, 1)));
    }

    #[test]
    fn a_fence_of_the_waiting_or_of_the_acquiring_thread_suffices() {
        let (mut a, mut b) = (WarpClock::new(&S, 0), WarpClock::new(&S, 1));
        let pass = |from: &mut WarpClock, to: &mut WarpClock| {
            let mut bar = Clock::new(&S);
            from.release(Mask::MAX, &mut bar);
            to.acquire(Mask::MAX, &bar);
        };
        a.advance_own_copies(S.copy_stream(0), Mask::MAX, 1);
        assert!(!a.is_fenced(3, &copy_epoch(3, 0)));
        a.fence_streams(Mask::MAX, 0..2);
        assert!(a.is_fenced(3, &copy_epoch(3, 0)) && !a.is_fenced(3, &copy_epoch(2, 0)));
        pass(&mut a, &mut b);
        assert!(b.is_fenced(3, &copy_epoch(2, 0)) && !b.is_fenced(3, &copy_epoch(2, 1)));
        a.advance_own_copies(S.copy_stream(0), Mask::MAX, 2);
        pass(&mut a, &mut b);
        assert!(b.has_seen(3, &copy_epoch(2, 1)) && !b.is_fenced(3, &copy_epoch(2, 1)));
        b.fence_streams(0b1000, 0..2);
        assert!(b.is_fenced(3, &copy_epoch(2, 1)) && !b.is_fenced(4, &copy_epoch(2, 1)));
    }

    #[test]
    fn each_lane_tracks_its_own_copy_waits() {
        let mut a = WarpClock::new(&S, 0);
        a.advance_own_copies(S.copy_stream(0), 0b01, 2);
        a.advance_own_copies(S.copy_stream(0), 0b10, 5);
        assert!(a.has_seen(0, &copy_epoch(0, 1)) && !a.has_seen(0, &copy_epoch(0, 4)));
        assert!(a.has_seen(1, &copy_epoch(1, 4)) && !a.has_seen(1, &copy_epoch(0, 1)));
        let mut bar = Clock::new(&S);
        a.release(0b01, &mut bar);
        assert!(bar.has_seen(&copy_epoch(0, 1)) && !bar.has_seen(&copy_epoch(1, 1)));
    }

    #[test]
    fn separate_waits_of_two_lanes_stay_separate() {
        let mut warps = [0, 1].map(|t| WarpClock::new(&T, t));
        let [a, b] = &mut warps;
        let (mut first, mut second) = (Clock::new(&T), Clock::new(&T));
        let x = current_epoch(a, 3);
        a.release(1 << 3, &mut first);
        let y = current_epoch(a, 4);
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
        let (x, y) = (current_epoch(&a, 0), current_epoch(&a, 9));
        a.sync_lanes(0b11);
        assert!(a.has_seen(1, &x) && !a.has_seen(1, &y) && !a.has_seen(2, &x));
        // An arrival of one of these lanes publishes the joined clock.
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
