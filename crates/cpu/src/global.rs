//! The shadow of global memory: who last touched each byte, and whether the
//! next access is ordered after it.
//!
//! As the shadow of shared memory, with three differences. Threads are those of
//! the whole grid: what is known of another cluster came through a release and
//! an acquire at the scope of the device. Of the reads that do not know of each
//! other two are kept. And clusters that run apart have a shadow each, which
//! the shadow of the launch absorbs in order: nothing orders two of them.

use crate::cells::{Cell, Cells, Mark};
use crate::clock::{Clock, Moment};
use crate::warp_clock::{ALL_LANES, WarpClock, mask_of};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use warpline_ir::{Mask, Scope, WARP};

/// One op that touched global memory, in one segment of one thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Touched {
    /// The cluster, by its number in the grid.
    pub(crate) cluster: u64,
    /// The warp that ran or issued the op, counted through the cluster.
    pub(crate) warp: u32,
    /// The op.
    pub(crate) site: u32,
    /// The warp or engine that touches.
    pub(crate) thread: u32,
    /// The segment, phase or number.
    pub(crate) clock: u32,
    /// The scope of a strong access.
    pub(crate) scope: Option<Scope>,
    pub(crate) lanes: Lanes,
}

/// The lanes of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lanes {
    /// One, or [`ALL_LANES`]; each access of the op says which.
    Told,
    /// All, side by side: each `1 << shift` bytes, the byte at 0 being of lane `first`.
    Dense { shift: u8, first: u8 },
}

impl Lanes {
    /// All lanes side by side from a byte on, `width` bytes each.
    pub(crate) fn dense(start: u64, width: usize) -> Self {
        let shift = width.trailing_zeros() as u8;
        let first = (WARP as u64 - (start >> shift) % WARP as u64) as u8 % WARP as u8;
        Lanes::Dense { shift, first }
    }
}

/// An earlier access that the current one is not ordered after.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Conflict {
    pub(crate) with: Touched,
    /// Did it write?
    pub(crate) wrote: bool,
    /// The first byte of the buffer that both touch.
    pub(crate) byte: u64,
    pub(crate) why: Why,
}

/// Why two accesses conflict.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Why {
    /// Nothing orders them.
    Order,
    /// Both are strong, and their scopes do not reach each other.
    Scope,
    /// One is a read of what nobody may write during the launch, in whatever order.
    ReadOnly,
}

/// Two clusters that ran apart and met.
#[derive(Debug)]
pub(crate) struct Meeting {
    /// An access of the later one.
    pub(crate) who: Touched,
    pub(crate) writes: bool,
    pub(crate) buffer: usize,
    /// The one before.
    pub(crate) conflict: Conflict,
}

/// An access that is about to happen.
#[derive(Clone, Copy)]
pub(crate) struct Access<'a> {
    pub(crate) touched: Touched,
    /// What its warp knows; `None`: nothing of other clusters.
    pub(crate) clock: Option<&'a WarpClock>,
    /// The lane that asks, or [`ALL_LANES`]; each knows for itself if they are side by side.
    pub(crate) lane: u8,
    pub(crate) writes: bool,
}

/// The shadow of global memory.
#[derive(Debug)]
pub(crate) struct Global {
    /// Warps of a CTA.
    warps: u32,
    records: Vec<Touched>,
    /// Records that are likely to be asked for again, each in a place of its own.
    memo: Box<[u32]>,
    compact_at: usize,
    /// By number of the buffer.
    buffers: Vec<Cells>,
    /// By number of the buffer: the last read of each byte as one that nobody
    /// writes during the launch, in the place of a write.
    read_only: Vec<Cells>,
    /// By address of a word: what was released through it at the scope of the device.
    released: HashMap<u64, Clock>,
}

const LANE_BITS: u32 = 6;

/// Records that are kept at hand.
const MEMO: usize = 1024;

/// Records are compacted when there are more than this many, or twice as many
/// as were in use the last time.
const COMPACT: usize = 1 << 18;

fn mark(record: u32, lane: u8) -> Mark {
    record << LANE_BITS | u32::from(lane)
}

impl Global {
    /// Nothing was touched; a CTA has `warps` warps.
    pub(crate) fn new(warps: u32) -> Self {
        let nobody = Touched {
            cluster: 0,
            warp: 0,
            site: 0,
            thread: 0,
            clock: 0,
            scope: None,
            lanes: Lanes::Told,
        };
        Self {
            warps,
            records: vec![nobody],
            memo: vec![0; MEMO].into(),
            compact_at: COMPACT,
            buffers: Vec::new(),
            read_only: Vec::new(),
            released: HashMap::new(),
        }
    }

    /// An access to a byte of a buffer that the current one is not ordered after.
    pub(crate) fn check(
        &self,
        a: &Access<'_>,
        buffer: usize,
        range: &Range<u64>,
    ) -> Option<Conflict> {
        if a.writes
            && let Some(c) = self.touched(&self.read_only, false, buffer, range)
        {
            return Some(c);
        }
        let cells = self.buffers.get(buffer)?;
        // Neighbours are often alike.
        let mut clear = Cell::default();
        cells.find(range, &mut |cell, bytes| {
            if *cell == clear {
                return None;
            }
            let reads = cell.reads.iter().filter(|_| a.writes);
            if reads.chain([&cell.write]).all(|&m| self.is_over(a, m)) {
                clear = *cell;
                return None;
            }
            self.check_cell(a, cell, bytes)
        })
    }

    /// The first byte that is marked as written in some cells.
    fn touched(
        &self,
        cells: &[Cells],
        wrote: bool,
        buffer: usize,
        range: &Range<u64>,
    ) -> Option<Conflict> {
        cells.get(buffer)?.find(range, &mut |cell, bytes| {
            (cell.write != 0).then(|| Conflict {
                with: self.records[(cell.write >> LANE_BITS) as usize],
                wrote,
                byte: bytes.start,
                why: Why::ReadOnly,
            })
        })
    }

    /// A write to a byte that is read as one that nobody writes during the launch.
    pub(crate) fn check_read_only(&self, buffer: usize, range: &Range<u64>) -> Option<Conflict> {
        self.touched(&self.buffers, true, buffer, range)
    }

    /// Notes a read of bytes that nobody may write during the launch.
    pub(crate) fn note_read_only(&mut self, record: u32, buffer: usize, range: &Range<u64>) {
        if self.read_only.len() <= buffer {
            self.read_only.resize_with(buffer + 1, Cells::default);
        }
        let write = mark(record, ALL_LANES);
        let reads = [0; 2];
        self.read_only[buffer].fill(range, Cell { write, reads });
    }

    /// Is an access ordered before all bytes of the current one, for all lanes? A quick yes.
    fn is_over(&self, a: &Access<'_>, m: Mark) -> bool {
        let r = &self.records[(m >> LANE_BITS) as usize];
        m == 0 || self.see_each_other(r, &a.touched) || self.all_know(a, m)
    }

    fn check_cell(&self, a: &Access<'_>, cell: &Cell, bytes: Range<u64>) -> Option<Conflict> {
        let reads = cell.reads.into_iter().filter(|_| a.writes);
        let marks = std::iter::once(cell.write).chain(reads);
        let (i, (m, byte)) = marks
            .enumerate()
            .filter(|(_, m)| *m != 0)
            .find_map(|(i, m)| Some((i, (m, self.unordered(a, m, &bytes)?))))?;
        let with = self.records[(m >> LANE_BITS) as usize];
        Some(Conflict {
            with,
            wrote: i == 0,
            byte,
            why: match with.scope.is_some() && a.touched.scope.is_some() {
                true => Why::Scope,
                false => Why::Order,
            },
        })
    }

    /// The first byte at which an access does not know of an earlier one.
    fn unordered(&self, a: &Access<'_>, m: Mark, bytes: &Range<u64>) -> Option<u64> {
        let r = &self.records[(m >> LANE_BITS) as usize];
        if self.is_over(a, m) {
            return None;
        }
        let same = r.cluster == a.touched.cluster && r.thread == a.touched.thread;
        if same && r.lanes != Lanes::Told && r.lanes == a.touched.lanes {
            return None;
        }
        let knows = |byte: u64| {
            let asks = lane_at(a.touched.lanes, a.lane, byte);
            self.knows(a, asks, m, byte)
        };
        bytes.clone().find(|&b| !knows(b))
    }

    /// Two strong accesses that reach each other do not conflict.
    fn see_each_other(&self, a: &Touched, b: &Touched) -> bool {
        let needed = match a.cluster == b.cluster {
            true if a.warp / self.warps == b.warp / self.warps => Scope::Cta,
            true => Scope::Cluster,
            false => Scope::Gpu,
        };
        let reaches = |t: &Touched| t.scope.is_some_and(|s| s >= needed);
        reaches(a) && reaches(b)
    }

    fn moment(&self, m: Mark, byte: u64) -> Moment {
        let r = &self.records[(m >> LANE_BITS) as usize];
        Moment {
            thread: r.thread,
            lanes: mask_of(lane_at(r.lanes, (m & ((1 << LANE_BITS) - 1)) as u8, byte)),
            clock: r.clock,
        }
    }

    /// Does the lane that asks know of an access to a byte?
    fn knows(&self, a: &Access<'_>, lane: u8, m: Mark, byte: u64) -> bool {
        let r = &self.records[(m >> LANE_BITS) as usize];
        let moment = self.moment(m, byte);
        a.clock
            .is_some_and(|c| match r.cluster == a.touched.cluster {
                true => c.knows(lane, &moment),
                false => c.knows_far(lane, r.cluster, &moment),
            })
    }

    /// May all lanes of a warp read the same bytes? A quick yes; `false` says nothing.
    pub(crate) fn is_clear(&self, a: &Access<'_>, buffer: usize, range: &Range<u64>) -> bool {
        let mut all = *a;
        all.touched.lanes = Lanes::dense(0, 1);
        let mut met = |c: &Cell, _| (!self.is_over(&all, c.write)).then_some(());
        let cells = self.buffers.get(buffer);
        cells.is_none_or(|c| c.find(range, &mut met).is_none())
    }

    /// Does every lane that asks know of all lanes of an access? A quick yes.
    fn all_know(&self, a: &Access<'_>, m: Mark) -> bool {
        let r = &self.records[(m >> LANE_BITS) as usize];
        let Some(clock) = a.clock else { return false };
        let moment = match r.lanes {
            Lanes::Told => self.moment(m, 0),
            Lanes::Dense { .. } => Moment {
                lanes: Mask::MAX,
                ..self.moment(m, 0)
            },
        };
        match (r.cluster == a.touched.cluster, a.touched.lanes, r.lanes) {
            (false, _, _) => clock.all_know_far(r.cluster, &moment),
            // One thread, one after the other.
            (true, Lanes::Told, Lanes::Told) => clock.knows(a.lane, &moment),
            (true, _, _) => clock.all_know(&moment),
        }
    }

    /// Notes an access, by its record. Lanes of one op are noted after all were checked.
    pub(crate) fn note(&mut self, a: &Access<'_>, record: u32, buffer: usize, range: &Range<u64>) {
        let new = mark(record, a.lane);
        if self.buffers.len() <= buffer {
            self.buffers.resize_with(buffer + 1, Cells::default);
        }
        let mut cells = std::mem::take(&mut self.buffers[buffer]);
        match a.writes {
            true => cells.fill(
                range,
                Cell {
                    write: new,
                    reads: [0; 2],
                },
            ),
            false => {
                let mut last = (Cell::default(), self.read(a, Cell::default(), new));
                cells.change(range, &mut |cell| {
                    if cell != last.0 {
                        last = (cell, self.read(a, cell, new));
                    }
                    last.1
                });
            }
        }
        self.buffers[buffer] = cells;
    }

    /// A cell with one reader more.
    fn read(&self, a: &Access<'_>, cell: Cell, new: Mark) -> Cell {
        let [first, last] = cell.reads;
        let over = |m: Mark| m == 0 || m == new || self.all_know(a, m);
        let same = |m: Mark| m != 0 && m >> LANE_BITS == new >> LANE_BITS;
        let both = mark(new >> LANE_BITS, ALL_LANES);
        let reads = match (over(first), over(last)) {
            (true, true) => [new, 0],
            (true, false) => [new, last],
            (false, true) if same(first) => [both, 0],
            (false, _) if same(first) => [both, last],
            (false, true) => [first, new],
            (false, false) if same(last) => [first, both],
            // Of another cluster than the first, so that a writer of either meets one.
            (false, false) => [first, self.other_than(first, last, new)],
        };
        Cell { reads, ..cell }
    }

    /// The last reader that is not of the first one's cluster, if there is one.
    fn other_than(&self, first: Mark, last: Mark, new: Mark) -> Mark {
        let cluster = |m: Mark| self.records[(m >> LANE_BITS) as usize].cluster;
        match cluster(new) == cluster(first) && cluster(last) != cluster(first) {
            true => last,
            false => new,
        }
    }

    /// The record of an op's accesses, good until the next one is asked for.
    pub(crate) fn record(&mut self, t: Touched) -> u32 {
        self.tidy();
        let place = t.cluster as usize * 131 + t.warp as usize * 31 + t.site as usize;
        let last = &mut self.memo[place % MEMO];
        if *last == 0 || self.records[*last as usize] != t {
            *last = self.records.len() as u32;
            self.records.push(t);
        }
        *last
    }

    /// Drops the records that no byte refers to, when there are many.
    fn tidy(&mut self) {
        if self.records.len() <= self.compact_at {
            return;
        }
        let mut kept = vec![self.records[0]];
        let mut names = HashMap::new();
        for cells in self.buffers.iter_mut().chain(&mut self.read_only) {
            cells.rename(&mut |m| match m >> LANE_BITS {
                0 => 0,
                old => {
                    let new = *names.entry(old).or_insert_with(|| {
                        kept.push(self.records[old as usize]);
                        kept.len() as u32 - 1
                    });
                    mark(new, (m & ((1 << LANE_BITS) - 1)) as u8)
                }
            });
        }
        self.records = kept;
        self.memo.fill(0);
        self.compact_at = COMPACT.max(2 * self.records.len());
    }

    /// Adds what a cluster touched that ran apart from those before: the first
    /// of its accesses that meets one of theirs, if any does.
    pub(crate) fn absorb(&mut self, of: &Global) -> Option<Meeting> {
        for (buffer, cells) in of.buffers.iter().enumerate() {
            let found = cells.each(&mut |cell, bytes| {
                let reads = cell.reads.map(|m| (m, false));
                let touched = [(cell.write, true)].into_iter().chain(reads);
                touched.filter(|(m, _)| *m != 0).find_map(|(m, writes)| {
                    let who = of.records[(m >> LANE_BITS) as usize];
                    let a = Access {
                        touched: who,
                        clock: None,
                        lane: (m & ((1 << LANE_BITS) - 1)) as u8,
                        writes,
                    };
                    let conflict = self.check_others(&a, buffer, &bytes);
                    if conflict.is_none() {
                        let record = self.record(who);
                        self.note(&a, record, buffer, &bytes);
                    }
                    conflict.map(|conflict| Meeting {
                        who,
                        writes,
                        buffer,
                        conflict,
                    })
                })
            });
            if found.is_some() {
                return found;
            }
        }
        self.absorb_read_only(of)
    }

    /// Adds what a cluster read as bytes that nobody writes during the launch.
    fn absorb_read_only(&mut self, of: &Global) -> Option<Meeting> {
        of.read_only.iter().enumerate().find_map(|(buffer, cells)| {
            cells.each(&mut |cell, bytes| {
                if cell.write == 0 {
                    return None;
                }
                let who = of.records[(cell.write >> LANE_BITS) as usize];
                if let Some(conflict) = self.check_read_only(buffer, &bytes) {
                    return Some(Meeting {
                        who,
                        writes: false,
                        buffer,
                        conflict,
                    });
                }
                let record = self.record(who);
                self.note_read_only(record, buffer, &bytes);
                None
            })
        })
    }

    /// As [`check`](Self::check), for a cluster that was judged by itself.
    fn check_others(&self, a: &Access<'_>, buffer: usize, range: &Range<u64>) -> Option<Conflict> {
        if a.writes
            && let Some(c) = self.touched(&self.read_only, false, buffer, range)
        {
            return Some(c);
        }
        let cells = self.buffers.get(buffer)?;
        cells.find(range, &mut |cell, bytes| {
            let of_others = |m: Mark| {
                let r = &self.records[(m >> LANE_BITS) as usize];
                if m != 0 && r.cluster != a.touched.cluster {
                    m
                } else {
                    0
                }
            };
            let cell = Cell {
                write: of_others(cell.write),
                reads: cell.reads.map(of_others),
            };
            self.check_cell(a, &cell, bytes)
        })
    }

    /// Something is released through a word to other clusters.
    pub(crate) fn release(&mut self, word: u64, cluster: u64, told: &Clock) {
        let through = self.released.entry(word);
        let through = through.or_insert_with(|| told.nothing());
        through.far.join(&told.far);
        through.far.learn(cluster, &Arc::new(told.near()));
    }

    /// What other clusters have released through a word.
    pub(crate) fn acquired(&self, word: u64) -> Option<&Clock> {
        self.released.get(&word)
    }
}

/// The lane that an access has at a byte.
fn lane_at(lanes: Lanes, told: u8, byte: u64) -> u8 {
    match lanes {
        Lanes::Told => told,
        Lanes::Dense { shift, first } => (((byte >> shift) + u64::from(first)) % WARP as u64) as u8,
    }
}
