//! The shadow of shared memory: who last touched each byte, and whether the
//! next access is ordered after it (the FastTrack scheme).
//!
//! Each byte keeps two *marks*: its last write, and its reads since. A mark is
//! the number of a [`Touched`] record and the code of a set of lanes; a byte
//! read, or updated by atomics, by several threads that do not know of each
//! other keeps a mark of a set of marks.
//! Records are shared by all bytes that one op touched, so that a byte costs
//! eight bytes of shadow, and runs of equal marks are judged once.

use crate::clock::{Moment, Threads};
use crate::lane_sets::{LANE_BITS, LaneCode, LaneSets};
use crate::proxy::{Covers, ProxyFences};
use crate::warp_clock::WarpClock;
use std::collections::HashMap;
use std::ops::Range;
use warpline_ir::Mask;

/// One op that touched memory, in one segment of one thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Touched {
    /// The warp or engine.
    pub(crate) thread: u32,
    /// The segment, phase or number.
    clock: u32,
    /// The op.
    pub(crate) site: u32,
    /// The warp that ran or issued the op, counted through the cluster.
    pub(crate) warp: u32,
    /// Proxy fences the warp had run before.
    fence: u32,
    /// Was it an atomic? Two of those never race.
    atomic: bool,
}

/// A record and the code of its lanes, or a set: 0 is none.
type Mark = u32;

const SET: Mark = 1 << 31;

/// Records and sets are compacted when there are more than this many, or
/// twice as many as were in use the last time.
const COMPACT: usize = 1 << 18;

/// An earlier access that the current one is not ordered after.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Conflict {
    /// The earlier access.
    pub(crate) with: Touched,
    /// Did it write?
    pub(crate) wrote: bool,
    /// The lanes and the segment of it.
    pub(crate) moment: Moment,
    /// The first byte both touch.
    pub(crate) byte: u32,
}

/// Who is about to touch memory.
#[derive(Clone, Copy)]
pub(crate) struct Who<'a> {
    /// What its warp knows.
    pub(crate) clock: &'a WarpClock,
    /// The lane, or [`ALL_LANES`](crate::warp_clock::ALL_LANES).
    pub(crate) lane: u8,
    /// Is it an atomic?
    pub(crate) atomic: bool,
}

/// The shadow of the shared memory of a cluster.
#[derive(Debug)]
pub(crate) struct Shadow {
    records: Vec<Touched>,
    sets: Vec<Box<[Mark]>>,
    set_of: HashMap<Box<[Mark]>, u32>,
    compact_at: usize,
    /// By warp and site: the record of its last access there.
    memo: Vec<Vec<u32>>,
    sites: usize,
    /// The sets of lanes that marks name.
    lanes: LaneSets,
    /// By warp: proxy fences run.
    fences: Vec<ProxyFences>,
    /// Warps of each CTA.
    warps: u32,
    /// By CTA.
    cells: Vec<Cells>,
}

#[derive(Debug)]
struct Cells {
    write: Vec<Mark>,
    read: Vec<Mark>,
}

fn mark(record: u32, lanes: LaneCode) -> Mark {
    record << LANE_BITS | u32::from(lanes.0)
}

fn code(m: Mark) -> LaneCode {
    LaneCode((m & ((1 << LANE_BITS) - 1)) as u16)
}

impl Shadow {
    /// The shadow of `bytes` bytes in each CTA.
    pub(crate) fn new(t: &Threads, bytes: usize, sites: usize) -> Self {
        let warps = t.all_warps() as usize;
        let cells = || Cells {
            write: vec![0; bytes],
            read: vec![0; bytes],
        };
        let nobody = Touched {
            thread: 0,
            clock: 0,
            site: 0,
            warp: 0,
            fence: 0,
            atomic: false,
        };
        Self {
            records: vec![nobody],
            sets: Vec::new(),
            set_of: HashMap::new(),
            compact_at: COMPACT,
            memo: vec![Vec::new(); warps],
            sites,
            lanes: LaneSets::default(),
            fences: vec![ProxyFences::default(); warps],
            warps: t.warps,
            cells: (0..t.ctas).map(|_| cells()).collect(),
        }
    }

    /// The record of an access by a warp, now.
    pub(crate) fn access(&mut self, who: &Who<'_>, site: u32) -> u32 {
        let warp = who.clock.thread;
        let (thread, clock) = (warp, who.clock.now);
        self.record(Touched {
            thread,
            clock,
            site,
            warp,
            fence: self.fences[warp as usize].count(),
            atomic: who.atomic,
        })
    }

    /// The record of an access by an engine, for an op that `warp` issued.
    pub(crate) fn engine(
        &mut self,
        thread: u32,
        clock: u32,
        site: u32,
        warp: u32,
        atomic: bool,
    ) -> u32 {
        self.record(Touched {
            thread,
            clock,
            site,
            warp,
            fence: 0,
            atomic,
        })
    }

    fn record(&mut self, t: Touched) -> u32 {
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

    /// Makes room; to be called between accesses.
    pub(crate) fn tidy(&mut self) {
        if self.records.len() + self.sets.len() > self.compact_at {
            self.compact();
        }
    }

    /// The code of a set of lanes.
    pub(crate) fn lanes(&mut self, lanes: Mask) -> LaneCode {
        self.lanes.code(lanes)
    }

    /// Notes a proxy fence of some lanes of a warp.
    pub(crate) fn fence(&mut self, clock: &WarpClock, lanes: Mask, covers: Covers) {
        self.fences[clock.thread as usize].run(lanes, clock.now, covers);
    }

    /// Notes a proxy fence that only acquires, and what its warp knows.
    pub(crate) fn fence_acquire(&mut self, lanes: Mask, clock: &WarpClock) {
        self.fences[clock.thread as usize].acquire(lanes, clock);
    }

    fn moment(&self, m: Mark) -> Moment {
        let r = &self.records[(m >> LANE_BITS) as usize];
        Moment {
            thread: r.thread,
            lanes: self.lanes.mask(code(m)),
            clock: r.clock,
        }
    }

    fn knows(&self, who: &Who<'_>, m: Mark) -> bool {
        m == 0
            || who.clock.knows(who.lane, &self.moment(m))
            || who.atomic && self.records[(m >> LANE_BITS) as usize].atomic
    }

    /// The single accesses in a mark.
    fn each(&self, m: Mark) -> impl Iterator<Item = Mark> {
        let set = match m & SET {
            0 => &[][..],
            _ => &self.sets[(m & !SET) as usize],
        };
        let one = (m & SET == 0).then_some(m);
        one.into_iter().chain(set.iter().copied())
    }

    /// The mark of a single access that `who` does not know of, in a mark.
    fn unknown(&self, who: &Who<'_>, m: Mark) -> Option<Mark> {
        self.each(m).find(|&m| !self.knows(who, m))
    }

    fn conflict(&self, m: Mark, wrote: bool, byte: u32) -> Conflict {
        Conflict {
            with: self.records[(m >> LANE_BITS) as usize],
            moment: self.moment(m),
            wrote,
            byte,
        }
    }

    /// The first byte of a range whose mark fails a test; runs of equal marks are tested once.
    fn first_bad(
        marks: &[Mark],
        range: &Range<u32>,
        mut bad: impl FnMut(Mark) -> Option<Mark>,
    ) -> Option<(Mark, u32)> {
        let mut last = 0;
        let marks = &marks[range.start as usize..range.end as usize];
        for (first, chunk) in (range.start..).step_by(64).zip(marks.chunks(64)) {
            // Most chunks are of one mark, or of the one before.
            if chunk.iter().fold(0, |d, m| d | m ^ last) == 0 {
                continue;
            }
            for (byte, &m) in (first..).zip(chunk) {
                if m != last {
                    if m != 0
                        && let Some(m) = bad(m)
                    {
                        return Some((m, byte));
                    }
                    last = m;
                }
            }
        }
        None
    }

    /// May `who` read these bytes?
    pub(crate) fn check_read(
        &self,
        who: &Who<'_>,
        cta: u32,
        range: &Range<u32>,
    ) -> Option<Conflict> {
        let cells = &self.cells[cta as usize];
        Self::first_bad(&cells.write, range, |m| self.unknown(who, m))
            .map(|(m, byte)| self.conflict(m, true, byte))
    }

    /// May `who` write these bytes?
    pub(crate) fn check_write(
        &self,
        who: &Who<'_>,
        cta: u32,
        range: &Range<u32>,
    ) -> Option<Conflict> {
        self.check_read(who, cta, range).or_else(|| {
            let cells = &self.cells[cta as usize];
            Self::first_bad(&cells.read, range, |m| self.unknown(who, m))
                .map(|(m, byte)| self.conflict(m, false, byte))
        })
    }

    /// May every lane of a warp read, or write, any of these bytes? A quick yes;
    /// `false` says nothing.
    pub(crate) fn is_clear(
        &self,
        clock: &WarpClock,
        cta: u32,
        range: &Range<u32>,
        write: bool,
    ) -> bool {
        let cells = &self.cells[cta as usize];
        let unknown = |m: Mark| {
            let known = m & SET == 0 && clock.all_know(&self.moment(m));
            (!known).then_some(m)
        };
        Self::first_bad(&cells.write, range, unknown).is_none()
            && (!write || Self::first_bad(&cells.read, range, unknown).is_none())
    }

    /// A generic access to these bytes that an engine must not meet: a write,
    /// or, if the engine writes, a read, whose thread has run no proxy fence since.
    pub(crate) fn unfenced(
        &self,
        who: &Who<'_>,
        cta: u32,
        range: &Range<u32>,
        write: bool,
    ) -> Option<Conflict> {
        let cells = &self.cells[cta as usize];
        let found = |marks: &[Mark], wrote: bool| {
            let bad = |m| self.each(m).find(|&m| !self.is_fenced(who, cta, m));
            Self::first_bad(marks, range, bad).map(|(m, byte)| self.conflict(m, wrote, byte))
        };
        found(&cells.write, true).or_else(|| found(&cells.read, false).filter(|_| write))
    }

    /// Have the lanes of an access run a proxy fence since, one that covers the
    /// CTA of its bytes and that who asks knows of? If they only released, to bytes of their own CTA: has
    /// who asks acquired since? For what lanes copied, has any who knew of it
    /// run one? Engines need none.
    fn is_fenced(&self, who: &Who<'_>, cta: u32, m: Mark) -> bool {
        let r = &self.records[(m >> LANE_BITS) as usize];
        let moment = self.moment(m);
        let Some(fences) = self.fences.get(r.thread as usize) else {
            return who.clock.is_fenced(who.lane, &moment);
        };
        let own = cta == r.thread / self.warps;
        let knows = |fence: &Moment| who.clock.knows(who.lane, fence);
        let asks = &self.fences[who.clock.thread as usize];
        fences.order(&moment, r.fence, own, knows)
            || own && fences.hand_over(&moment, r.fence, asks, who.lane)
    }

    /// Notes that these bytes were written by one who knows of all who touched them.
    pub(crate) fn wrote(&mut self, record: u32, lanes: LaneCode, cta: u32, range: &Range<u32>) {
        let cells = &mut self.cells[cta as usize];
        let range = range.start as usize..range.end as usize;
        cells.write[range.clone()].fill(mark(record, lanes));
        cells.read[range].fill(0);
    }

    /// Notes that an atomic updated these bytes: other atomics that it does not
    /// know of stay beside it.
    pub(crate) fn updated(
        &mut self,
        knows: &dyn Fn(&Moment) -> bool,
        record: u32,
        lanes: LaneCode,
        cta: u32,
        range: &Range<u32>,
    ) {
        let mut marks = std::mem::take(&mut self.cells[cta as usize].write);
        self.add(knows, mark(record, lanes), &mut marks, range);
        self.cells[cta as usize].write = marks;
    }

    /// Notes that these bytes were read: by `who`, or by an engine it gave work to.
    pub(crate) fn read(
        &mut self,
        who: &Who<'_>,
        record: u32,
        lanes: LaneCode,
        cta: u32,
        range: &Range<u32>,
    ) {
        let mut marks = std::mem::take(&mut self.cells[cta as usize].read);
        let knows = |m: &Moment| who.clock.knows(who.lane, m);
        self.add(&knows, mark(record, lanes), &mut marks, range);
        self.cells[cta as usize].read = marks;
    }

    /// Adds a mark to those of some bytes.
    fn add(
        &mut self,
        knows: &dyn Fn(&Moment) -> bool,
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
                    (from, to) = (*m, self.beside(knows, *m, new));
                }
                *m = to;
            }
        }
    }

    /// The lanes of two marks of one record.
    fn both(&mut self, a: Mark, b: Mark) -> Mark {
        let lanes = self.lanes.mask(code(a)) | self.lanes.mask(code(b));
        mark(a >> LANE_BITS, self.lanes.code(lanes))
    }

    /// Does a new access stand for an old one: is who knows of it sure to know
    /// of the old one, and who conflicts with the old one sure to conflict with it?
    fn covers(&self, knows: &dyn Fn(&Moment) -> bool, old: Mark, new: Mark) -> bool {
        let (m, n) = (self.moment(old), self.moment(new));
        let same_lanes = m.thread == n.thread && m.lanes & !n.lanes == 0 && m.clock <= n.clock;
        let atomic = |m: Mark| self.records[(m >> LANE_BITS) as usize].atomic;
        (same_lanes || knows(&m)) && (atomic(old) || !atomic(new))
    }

    /// The accesses in `old` that the new one does not stand for, and the new one.
    fn beside(&mut self, knows: &dyn Fn(&Moment) -> bool, old: Mark, new: Mark) -> Mark {
        if old == 0 || old == new {
            return new;
        }
        if old & SET == 0 {
            if old >> LANE_BITS == new >> LANE_BITS {
                return self.both(old, new);
            }
            if self.covers(knows, old, new) {
                return new;
            }
            return self.intern(vec![old, new]);
        }
        let mut set = self.sets[(old & !SET) as usize].to_vec();
        set.retain(|&m| !self.covers(knows, m, new));
        match set.iter().position(|m| m >> LANE_BITS == new >> LANE_BITS) {
            Some(i) => set[i] = self.both(set[i], new),
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

    /// Drops the records and sets that no byte refers to.
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
        warps: 3,
        bars: 0,
        streams: false,
        bulks: false,
    };

    fn who(clock: &WarpClock, lane: u8) -> Who<'_> {
        Who {
            clock,
            lane,
            atomic: false,
        }
    }

    fn read(s: &mut Shadow, w: &Who<'_>, site: u32, range: Range<u32>) -> Option<Conflict> {
        let found = s.check_read(w, 0, &range);
        let r = s.access(w, site);
        s.read(w, r, LaneCode::lane(w.lane), 0, &range);
        found
    }

    fn write(s: &mut Shadow, w: &Who<'_>, site: u32, range: Range<u32>) -> Option<Conflict> {
        let found = s.check_write(w, 0, &range);
        let r = s.access(w, site);
        s.wrote(r, LaneCode::lane(w.lane), 0, &range);
        found
    }

    #[test]
    fn a_write_must_know_of_every_reader() {
        let mut s = Shadow::new(&T, 64, 8);
        let mut w: Vec<_> = (0..3).map(|t| WarpClock::new(&T, t)).collect();
        assert_eq!(read(&mut s, &who(&w[0], 0), 1, 0..16), None);
        assert_eq!(read(&mut s, &who(&w[1], 0), 2, 8..24), None);
        // Warp 2 learns of warp 0 only.
        let mut bar = Clock::new(&T);
        w[0].release(u32::MAX, &mut bar);
        w[2].acquire(u32::MAX, &bar);
        assert_eq!(write(&mut s, &who(&w[2], 0), 3, 0..4), None);
        let c = s.check_write(&who(&w[2], 0), 0, &(4..32)).unwrap();
        assert_eq!(
            (c.byte, c.wrote, c.with.site, c.with.thread),
            (8, false, 2, 1)
        );
        let mut bar = Clock::new(&T);
        w[1].release(u32::MAX, &mut bar);
        w[2].acquire(u32::MAX, &bar);
        assert_eq!(write(&mut s, &who(&w[2], 0), 3, 0..32), None);
    }

    #[test]
    fn neighbours_do_not_conflict() {
        let mut s = Shadow::new(&T, 64, 8);
        let w: Vec<_> = (0..3).map(|t| WarpClock::new(&T, t)).collect();
        for round in 0..3 {
            for (i, w) in w.iter().enumerate() {
                let at = i as u32..i as u32 + 1;
                assert_eq!(write(&mut s, &who(w, 0), round, at.clone()), None);
                assert_eq!(read(&mut s, &who(w, 0), round, at), None);
            }
        }
    }

    #[test]
    fn a_fence_counts_for_its_lane_and_what_came_before() {
        let mut s = Shadow::new(&T, 64, 8);
        let mut w = WarpClock::new(&T, 0);
        write(&mut s, &who(&w, 0), 1, 0..4);
        write(&mut s, &who(&w, 1), 1, 4..8);
        s.fence(&w, 0b01, Covers::Cta);
        assert_eq!(s.unfenced(&who(&w, 0), 0, &(0..4), false), None);
        assert_eq!(s.unfenced(&who(&w, 0), 0, &(0..8), false).unwrap().byte, 4);
        write(&mut s, &who(&w, 0), 1, 0..4);
        assert_eq!(s.unfenced(&who(&w, 0), 0, &(0..4), false).unwrap().byte, 0);
        read(&mut s, &who(&w, 2), 2, 16..20);
        assert_eq!(s.unfenced(&who(&w, 0), 0, &(16..20), false), None);
        let c = s.unfenced(&who(&w, 0), 0, &(16..20), true).unwrap();
        assert_eq!((c.byte, c.wrote), (16, false));
        s.fence(&w, Mask::MAX, Covers::Cta);
        // A lane knows of the fences of others once they have met.
        assert!(s.unfenced(&who(&w, 0), 0, &(0..64), true).is_some());
        w.sync();
        assert_eq!(s.unfenced(&who(&w, 0), 0, &(0..64), true), None);
    }

    #[test]
    fn compaction_changes_no_answer() {
        let mut s = Shadow::new(&T, 64, 8);
        let mut w: Vec<_> = (0..3).map(|t| WarpClock::new(&T, t)).collect();
        for round in 0..100 {
            for w in &mut w[..2] {
                w.sync();
                read(&mut s, &who(w, (round % 32) as u8), 1, 0..32);
            }
        }
        write(&mut s, &who(&w[0], 0), 2, 40..50);
        let ask = |s: &Shadow| {
            (
                s.check_write(&who(&w[2], 0), 0, &(0..32)),
                s.check_read(&who(&w[1], 0), 0, &(32..64)),
                s.unfenced(&who(&w[0], 0), 0, &(0..64), true),
            )
        };
        let before = ask(&s);
        assert!(before.0.is_some() && before.1.is_some() && before.2.is_some());
        let records = s.records.len();
        s.compact();
        assert!(s.records.len() < records);
        assert_eq!(ask(&s), before);
        read(&mut s, &who(&w[1], 0), 1, 0..4);
    }
}
