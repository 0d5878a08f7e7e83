//! The shadow of shared memory: the last accesses of each byte, and the check that the next access is
//! ordered after them (the FastTrack scheme).
//!
//! Each byte has two *marks*: its last write, and its reads since. A mark is the number of an
//! [`AccessRecord`] and the code of a lane set. A byte with several unordered reads or atomics has the
//! mark of a set of marks. All bytes of one access share a record, so a byte costs eight bytes of
//! shadow, and the check tests a run of equal marks once.

use crate::clock::{Epoch, Threads};
use crate::lane_sets::{LANE_BITS, LaneCode, LaneSets};
use crate::proxy_fences::{FenceCoverage, ProxyFences};
use crate::warp_clock::WarpClock;
use std::collections::HashMap;
use std::ops::Range;
use warpline_ir::Mask;

/// An access of an op, in one segment of one thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct AccessRecord {
    /// The warp or engine.
    pub(crate) thread: u32,
    /// The segment, phase or number.
    clock: u32,
    /// The op.
    pub(crate) site: u32,
    /// The warp that ran or issued the op, by its index in the cluster.
    pub(crate) warp: u32,
    /// The number of proxy fences of the warp before the access.
    fence: u32,
    /// Whether the access is an atomic; two atomics never race.
    atomic: bool,
}

/// A record number and a lane code, or, with the bit [`SET`], the number of a set; 0 is none.
type Mark = u32;

const SET: Mark = 1 << 31;

/// Records and sets are compacted above this number, or above twice the number in use after the
/// last compaction.
const COMPACT: usize = 1 << 18;

/// An earlier access that the current one is not ordered after.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Conflict {
    /// The earlier access.
    pub(crate) earlier: AccessRecord,
    /// Whether the earlier access wrote.
    pub(crate) wrote: bool,
    /// The epoch of the earlier access.
    pub(crate) epoch: Epoch,
    /// The first common byte.
    pub(crate) byte: u32,
}

/// The thread of an access to be checked.
#[derive(Clone, Copy)]
pub(crate) struct Accessor<'a> {
    /// The clock of its warp.
    pub(crate) clock: &'a WarpClock,
    /// The lane, or [`ALL_LANES`](crate::warp_clock::ALL_LANES).
    pub(crate) lane: u8,
    /// Whether the access is an atomic.
    pub(crate) atomic: bool,
}

/// The shadow of the shared memory of a cluster.
#[derive(Debug)]
pub(crate) struct SharedShadow {
    records: Vec<AccessRecord>,
    sets: Vec<Box<[Mark]>>,
    /// The numbers of the sets.
    set_of: HashMap<Box<[Mark]>, u32>,
    compact_at: usize,
    /// By warp and site: the record of the last access.
    memo: Vec<Vec<u32>>,
    sites: usize,
    /// The lane sets of the marks.
    lanes: LaneSets,
    /// By warp: its proxy fences.
    fences: Vec<ProxyFences>,
    /// Warps of each CTA.
    warps_per_cta: u32,
    /// By CTA: the marks of each byte.
    cells: Vec<ByteMarks>,
}

#[derive(Debug)]
struct ByteMarks {
    write: Vec<Mark>,
    read: Vec<Mark>,
}

fn mark(record: u32, lanes: LaneCode) -> Mark {
    record << LANE_BITS | u32::from(lanes.0)
}

fn code(m: Mark) -> LaneCode {
    LaneCode((m & ((1 << LANE_BITS) - 1)) as u16)
}

impl SharedShadow {
    /// Creates the shadow of `bytes` bytes in each CTA.
    pub(crate) fn new(t: &Threads, bytes: usize, sites: usize) -> Self {
        let warps = t.all_warps() as usize;
        let cells = || ByteMarks {
            write: vec![0; bytes],
            read: vec![0; bytes],
        };
        let no_access = AccessRecord {
            thread: 0,
            clock: 0,
            site: 0,
            warp: 0,
            fence: 0,
            atomic: false,
        };
        Self {
            records: vec![no_access],
            sets: Vec::new(),
            set_of: HashMap::new(),
            compact_at: COMPACT,
            memo: vec![Vec::new(); warps],
            sites,
            lanes: LaneSets::default(),
            fences: vec![ProxyFences::default(); warps],
            warps_per_cta: t.warps_per_cta,
            cells: (0..t.ctas).map(|_| cells()).collect(),
        }
    }

    /// Returns the record of a warp's access in its current segment.
    pub(crate) fn access_record(&mut self, accessor: &Accessor<'_>, site: u32) -> u32 {
        let warp = accessor.clock.thread;
        let (thread, clock) = (warp, accessor.clock.now);
        self.intern_record(AccessRecord {
            thread,
            clock,
            site,
            warp,
            fence: self.fences[warp as usize].count(),
            atomic: accessor.atomic,
        })
    }

    /// Returns the record of an engine's access, for an op that `warp` issued.
    pub(crate) fn engine_record(
        &mut self,
        thread: u32,
        clock: u32,
        site: u32,
        warp: u32,
        atomic: bool,
    ) -> u32 {
        self.intern_record(AccessRecord {
            thread,
            clock,
            site,
            warp,
            fence: 0,
            atomic,
        })
    }

    fn intern_record(&mut self, t: AccessRecord) -> u32 {
        let memo = &mut self.memo[t.warp as usize];
        if memo.is_empty() {
            memo.resize(self.sites, 0);
        }
        let last = &mut memo[t.site as usize];
        if *last == 0 || self.records[*last as usize] != t {
            *last = self.records.len() as u32;
            self.records.push(t);
        }
        *last
    }

    /// Drops unreferenced records and sets if there are many. Record numbers do not survive it, so
    /// it must run between accesses.
    pub(crate) fn compact_if_large(&mut self) {
        if self.records.len() + self.sets.len() > self.compact_at {
            self.compact();
        }
    }

    /// Returns the code of a lane set.
    pub(crate) fn lanes(&mut self, lanes: Mask) -> LaneCode {
        self.lanes.code(lanes)
    }

    /// Records a proxy fence of some lanes of a warp.
    pub(crate) fn fence(&mut self, clock: &WarpClock, lanes: Mask, covers: FenceCoverage) {
        self.fences[clock.thread as usize].record(lanes, clock.now, covers);
    }

    /// Records an acquire proxy fence with the clock of its warp.
    pub(crate) fn fence_acquire(&mut self, lanes: Mask, clock: &WarpClock) {
        self.fences[clock.thread as usize].record_acquire(lanes, clock);
    }

    fn epoch(&self, m: Mark) -> Epoch {
        let r = &self.records[(m >> LANE_BITS) as usize];
        Epoch {
            thread: r.thread,
            lanes: self.lanes.mask(code(m)),
            clock: r.clock,
        }
    }

    fn has_seen(&self, accessor: &Accessor<'_>, m: Mark) -> bool {
        m == 0
            || accessor.clock.has_seen(accessor.lane, &self.epoch(m))
            || accessor.atomic && self.records[(m >> LANE_BITS) as usize].atomic
    }

    /// Iterates over the single accesses of a mark.
    fn accesses_of(&self, m: Mark) -> impl Iterator<Item = Mark> {
        let set = match m & SET {
            0 => &[][..],
            _ => &self.sets[(m & !SET) as usize],
        };
        let one = (m & SET == 0).then_some(m);
        one.into_iter().chain(set.iter().copied())
    }

    /// Returns a single access of a mark that the accessor is not ordered after.
    fn unordered(&self, accessor: &Accessor<'_>, m: Mark) -> Option<Mark> {
        self.accesses_of(m).find(|&m| !self.has_seen(accessor, m))
    }

    fn conflict(&self, m: Mark, wrote: bool, byte: u32) -> Conflict {
        Conflict {
            earlier: self.records[(m >> LANE_BITS) as usize],
            epoch: self.epoch(m),
            wrote,
            byte,
        }
    }

    /// Returns the first byte of a range with a failing mark, and the access that `failing` returns.
    /// Runs of equal marks are tested once.
    fn first_failing(
        marks: &[Mark],
        range: &Range<u32>,
        mut failing: impl FnMut(Mark) -> Option<Mark>,
    ) -> Option<(Mark, u32)> {
        let mut last = 0;
        let marks = &marks[range.start as usize..range.end as usize];
        for (first, chunk) in (range.start..).step_by(64).zip(marks.chunks(64)) {
            // Most chunks have a single mark, equal to the previous one.
            if chunk.iter().fold(0, |d, m| d | m ^ last) == 0 {
                continue;
            }
            for (byte, &m) in (first..).zip(chunk) {
                if m != last {
                    if m != 0
                        && let Some(m) = failing(m)
                    {
                        return Some((m, byte));
                    }
                    last = m;
                }
            }
        }
        None
    }

    /// Returns a write that a read by the accessor is not ordered after.
    pub(crate) fn check_read(
        &self,
        accessor: &Accessor<'_>,
        cta: u32,
        range: &Range<u32>,
    ) -> Option<Conflict> {
        let cells = &self.cells[cta as usize];
        Self::first_failing(&cells.write, range, |m| self.unordered(accessor, m))
            .map(|(m, byte)| self.conflict(m, true, byte))
    }

    /// Returns an access that a write by the accessor is not ordered after.
    pub(crate) fn check_write(
        &self,
        accessor: &Accessor<'_>,
        cta: u32,
        range: &Range<u32>,
    ) -> Option<Conflict> {
        self.check_read(accessor, cta, range).or_else(|| {
            let cells = &self.cells[cta as usize];
            Self::first_failing(&cells.read, range, |m| self.unordered(accessor, m))
                .map(|(m, byte)| self.conflict(m, false, byte))
        })
    }

    /// Whether every lane of a warp may access any of these bytes. A fast test: false does not imply a
    /// conflict.
    pub(crate) fn may_all_access(
        &self,
        clock: &WarpClock,
        cta: u32,
        range: &Range<u32>,
        write: bool,
    ) -> bool {
        let cells = &self.cells[cta as usize];
        let unordered = |m: Mark| {
            let is_ordered = m & SET == 0 && clock.all_have_seen(&self.epoch(m));
            (!is_ordered).then_some(m)
        };
        Self::first_failing(&cells.write, range, unordered).is_none()
            && (!write || Self::first_failing(&cells.read, range, unordered).is_none())
    }

    /// Returns a generic access to these bytes that no proxy fence follows: a write, or also a read if
    /// the engine writes.
    pub(crate) fn unfenced(
        &self,
        accessor: &Accessor<'_>,
        cta: u32,
        range: &Range<u32>,
        write: bool,
    ) -> Option<Conflict> {
        let cells = &self.cells[cta as usize];
        let found = |marks: &[Mark], wrote: bool| {
            let failing = |m| {
                self.accesses_of(m)
                    .find(|&m| !self.is_fenced(accessor, cta, m))
            };
            Self::first_failing(marks, range, failing)
                .map(|(m, byte)| self.conflict(m, wrote, byte))
        };
        found(&cells.write, true).or_else(|| found(&cells.read, false).filter(|_| write))
    }

    /// Whether a proxy fence separates an access from an asynchronous op that the accessor issues.
    ///
    /// The lanes of a generic access must have run a fence that covers the CTA of the bytes, and
    /// the accessor must be ordered after it. Alternatively the lanes ran a release fence and the
    /// accessor a later acquire fence. For `cp.async`, any thread that is ordered after the copy
    /// may run the fence. Engine accesses need no fence.
    fn is_fenced(&self, accessor: &Accessor<'_>, cta: u32, m: Mark) -> bool {
        let r = &self.records[(m >> LANE_BITS) as usize];
        let epoch = self.epoch(m);
        let Some(fences) = self.fences.get(r.thread as usize) else {
            return accessor.clock.is_fenced(accessor.lane, &epoch);
        };
        let own_cta = cta == r.thread / self.warps_per_cta;
        let has_seen = |fence: &Epoch| accessor.clock.has_seen(accessor.lane, fence);
        let issuer_fences = &self.fences[accessor.clock.thread as usize];
        fences.is_fenced(&epoch, r.fence, own_cta, has_seen)
            || own_cta
                && fences.is_released_and_acquired(&epoch, r.fence, issuer_fences, accessor.lane)
    }

    /// Records a write that is ordered after all earlier accesses to these bytes.
    pub(crate) fn record_write(
        &mut self,
        record: u32,
        lanes: LaneCode,
        cta: u32,
        range: &Range<u32>,
    ) {
        let cells = &mut self.cells[cta as usize];
        let range = range.start as usize..range.end as usize;
        cells.write[range.clone()].fill(mark(record, lanes));
        cells.read[range].fill(0);
    }

    /// Records an atomic update of these bytes; unordered earlier atomics are kept.
    pub(crate) fn record_update(
        &mut self,
        has_seen: &dyn Fn(&Epoch) -> bool,
        record: u32,
        lanes: LaneCode,
        cta: u32,
        range: &Range<u32>,
    ) {
        let mut marks = std::mem::take(&mut self.cells[cta as usize].write);
        self.add_mark(has_seen, mark(record, lanes), &mut marks, range);
        self.cells[cta as usize].write = marks;
    }

    /// Records a read by the accessor, or by an engine that the accessor started.
    pub(crate) fn record_read(
        &mut self,
        accessor: &Accessor<'_>,
        record: u32,
        lanes: LaneCode,
        cta: u32,
        range: &Range<u32>,
    ) {
        let mut marks = std::mem::take(&mut self.cells[cta as usize].read);
        let has_seen = |m: &Epoch| accessor.clock.has_seen(accessor.lane, m);
        self.add_mark(&has_seen, mark(record, lanes), &mut marks, range);
        self.cells[cta as usize].read = marks;
    }

    /// Adds a mark to a range.
    fn add_mark(
        &mut self,
        has_seen: &dyn Fn(&Epoch) -> bool,
        new: Mark,
        marks: &mut [Mark],
        range: &Range<u32>,
    ) {
        let (mut from, mut to) = (0, new);
        for chunk in marks[range.start as usize..range.end as usize].chunks_mut(64) {
            if chunk.iter().fold(0, |d, m| d | m ^ from) == 0 {
                chunk.fill(to);
                continue;
            }
            for m in chunk {
                if *m != from {
                    (from, to) = (*m, self.add_to_set(has_seen, *m, new));
                }
                *m = to;
            }
        }
    }

    /// Returns the mark with the lanes of two marks of one record.
    fn union(&mut self, a: Mark, b: Mark) -> Mark {
        let lanes = self.lanes.mask(code(a)) | self.lanes.mask(code(b));
        mark(a >> LANE_BITS, self.lanes.code(lanes))
    }

    /// Whether a new access supersedes an old one. A clock that includes the new access must include
    /// the old one, and an access that conflicts with the old one must conflict with the new one.
    fn covers(&self, has_seen: &dyn Fn(&Epoch) -> bool, old: Mark, new: Mark) -> bool {
        let (m, n) = (self.epoch(old), self.epoch(new));
        let same_lanes = m.thread == n.thread && m.lanes & !n.lanes == 0 && m.clock <= n.clock;
        let atomic = |m: Mark| self.records[(m >> LANE_BITS) as usize].atomic;
        (same_lanes || has_seen(&m)) && (atomic(old) || !atomic(new))
    }

    /// Returns the accesses in `old` that the new one does not supersede, and the new one.
    fn add_to_set(&mut self, has_seen: &dyn Fn(&Epoch) -> bool, old: Mark, new: Mark) -> Mark {
        if old == 0 || old == new {
            return new;
        }
        if old & SET == 0 {
            if old >> LANE_BITS == new >> LANE_BITS {
                return self.union(old, new);
            }
            if self.covers(has_seen, old, new) {
                return new;
            }
            return self.intern(vec![old, new]);
        }
        let mut set = self.sets[(old & !SET) as usize].to_vec();
        set.retain(|&m| !self.covers(has_seen, m, new));
        match set.iter().position(|m| m >> LANE_BITS == new >> LANE_BITS) {
            Some(i) => set[i] = self.union(set[i], new),
            None => set.push(new),
        }
        match set[..] {
            [one] => one,
            _ => self.intern(set),
        }
    }

    fn intern(&mut self, mut set: Vec<Mark>) -> Mark {
        set.sort_unstable();
        let set = set.into_boxed_slice();
        let next = self.sets.len() as u32;
        let id = *self.set_of.entry(set).or_insert_with_key(|set| {
            self.sets.push(set.clone());
            next
        });
        id | SET
    }

    /// Drops unreferenced records and sets.
    fn compact(&mut self) {
        let mut sets = HashMap::new();
        let mut records = HashMap::from([(0, 0)]);
        let (mut kept_sets, mut kept_records) = (Vec::new(), vec![self.records[0]]);
        let mut single = |m: Mark| {
            let id = m >> LANE_BITS;
            let new = *records.entry(id).or_insert_with(|| {
                kept_records.push(self.records[id as usize]);
                kept_records.len() as u32 - 1
            });
            new << LANE_BITS | m & ((1 << LANE_BITS) - 1)
        };
        let mut keep = |m: Mark| {
            if m & SET == 0 {
                return single(m);
            }
            let new = *sets.entry(m).or_insert_with(|| {
                let set = &self.sets[(m & !SET) as usize];
                kept_sets.push(set.iter().map(|&m| single(m)).collect::<Box<[_]>>());
                kept_sets.len() as u32 - 1
            });
            new | SET
        };
        for cells in &mut self.cells {
            for marks in [&mut cells.write, &mut cells.read] {
                let (mut from, mut to) = (0, 0);
                for m in marks {
                    if *m != from {
                        (from, to) = (*m, keep(*m));
                    }
                    *m = to;
                }
            }
        }
        self.records = kept_records;
        self.sets = kept_sets;
        let ids = self.sets.iter().cloned().zip(0..);
        self.set_of = ids.collect();
        self.memo.iter_mut().for_each(Vec::clear);
        self.compact_at = COMPACT.max(2 * (self.records.len() + self.sets.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    const T: Threads = Threads {
        ctas: 1,
        warps_per_cta: 3,
        mbarriers_per_cta: 0,
        has_copy_streams: false,
        has_bulk_groups: false,
    };

    fn accessor(clock: &WarpClock, lane: u8) -> Accessor<'_> {
        Accessor {
            clock,
            lane,
            atomic: false,
        }
    }

    fn read(
        s: &mut SharedShadow,
        w: &Accessor<'_>,
        site: u32,
        range: Range<u32>,
    ) -> Option<Conflict> {
        let found = s.check_read(w, 0, &range);
        let r = s.access_record(w, site);
        s.record_read(w, r, LaneCode::lane(w.lane), 0, &range);
        found
    }

    fn write(
        s: &mut SharedShadow,
        w: &Accessor<'_>,
        site: u32,
        range: Range<u32>,
    ) -> Option<Conflict> {
        let found = s.check_write(w, 0, &range);
        let r = s.access_record(w, site);
        s.record_write(r, LaneCode::lane(w.lane), 0, &range);
        found
    }

    #[test]
    fn a_write_must_be_ordered_after_every_read() {
        let mut s = SharedShadow::new(&T, 64, 8);
        let mut w: Vec<_> = (0..3).map(|t| WarpClock::new(&T, t)).collect();
        assert_eq!(read(&mut s, &accessor(&w[0], 0), 1, 0..16), None);
        assert_eq!(read(&mut s, &accessor(&w[1], 0), 2, 8..24), None);
        // Warp 2 synchronizes with warp 0 only.
        let mut bar = Clock::new(&T);
        w[0].release(u32::MAX, &mut bar);
        w[2].acquire(u32::MAX, &bar);
        assert_eq!(write(&mut s, &accessor(&w[2], 0), 3, 0..4), None);
        let c = s.check_write(&accessor(&w[2], 0), 0, &(4..32)).unwrap();
        assert_eq!(
            (c.byte, c.wrote, c.earlier.site, c.earlier.thread),
            (8, false, 2, 1)
        );
        let mut bar = Clock::new(&T);
        w[1].release(u32::MAX, &mut bar);
        w[2].acquire(u32::MAX, &bar);
        assert_eq!(write(&mut s, &accessor(&w[2], 0), 3, 0..32), None);
    }

    #[test]
    fn neighboring_bytes_do_not_conflict() {
        let mut s = SharedShadow::new(&T, 64, 8);
        let w: Vec<_> = (0..3).map(|t| WarpClock::new(&T, t)).collect();
        for round in 0..3 {
            for (i, w) in w.iter().enumerate() {
                let at = i as u32..i as u32 + 1;
                assert_eq!(write(&mut s, &accessor(w, 0), round, at.clone()), None);
                assert_eq!(read(&mut s, &accessor(w, 0), round, at), None);
            }
        }
    }

    #[test]
    fn a_fence_covers_earlier_accesses_of_its_lane() {
        let mut s = SharedShadow::new(&T, 64, 8);
        let mut w = WarpClock::new(&T, 0);
        write(&mut s, &accessor(&w, 0), 1, 0..4);
        write(&mut s, &accessor(&w, 1), 1, 4..8);
        s.fence(&w, 0b01, FenceCoverage::Cta);
        assert_eq!(s.unfenced(&accessor(&w, 0), 0, &(0..4), false), None);
        assert_eq!(
            s.unfenced(&accessor(&w, 0), 0, &(0..8), false)
                .unwrap()
                .byte,
            4
        );
        write(&mut s, &accessor(&w, 0), 1, 0..4);
        assert_eq!(
            s.unfenced(&accessor(&w, 0), 0, &(0..4), false)
                .unwrap()
                .byte,
            0
        );
        read(&mut s, &accessor(&w, 2), 2, 16..20);
        assert_eq!(s.unfenced(&accessor(&w, 0), 0, &(16..20), false), None);
        let c = s.unfenced(&accessor(&w, 0), 0, &(16..20), true).unwrap();
        assert_eq!((c.byte, c.wrote), (16, false));
        s.fence(&w, Mask::MAX, FenceCoverage::Cta);
        // A lane is ordered after the fences of other lanes after a warp sync.
        assert!(s.unfenced(&accessor(&w, 0), 0, &(0..64), true).is_some());
        w.sync();
        assert_eq!(s.unfenced(&accessor(&w, 0), 0, &(0..64), true), None);
    }

    #[test]
    fn compaction_changes_no_result() {
        let mut s = SharedShadow::new(&T, 64, 8);
        let mut w: Vec<_> = (0..3).map(|t| WarpClock::new(&T, t)).collect();
        for round in 0..100 {
            for w in &mut w[..2] {
                w.sync();
                read(&mut s, &accessor(w, (round % 32) as u8), 1, 0..32);
            }
        }
        write(&mut s, &accessor(&w[0], 0), 2, 40..50);
        let all_checks = |s: &SharedShadow| {
            (
                s.check_write(&accessor(&w[2], 0), 0, &(0..32)),
                s.check_read(&accessor(&w[1], 0), 0, &(32..64)),
                s.unfenced(&accessor(&w[0], 0), 0, &(0..64), true),
            )
        };
        let before = all_checks(&s);
        assert!(before.0.is_some() && before.1.is_some() && before.2.is_some());
        let records = s.records.len();
        s.compact();
        assert!(s.records.len() < records);
        assert_eq!(all_checks(&s), before);
        read(&mut s, &accessor(&w[1], 0), 1, 0..4);
    }
}
