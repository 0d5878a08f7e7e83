//! The shadow of global memory: the last accesses of each byte, and the check that the next access
//! is ordered after them.
//!
//! It differs from the shadow of shared memory in three ways. It covers the threads of the whole
//! grid: releases and acquires at GPU scope order the clusters. It keeps two of several unordered
//! reads. Clusters that run independently have one shadow each; the shadow of the launch merges these
//! in grid order, and nothing orders two such clusters.

use crate::cells::{Cell, Cells, Mark};
use crate::clock::{Clock, Epoch};
use crate::warp_clock::{ALL_LANES, WarpClock, mask_of};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use warpline_ir::{Mask, Scope, WARP};

/// An access of an op to global memory, in one segment of one thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct GlobalRecord {
    /// The cluster index in the grid.
    pub(crate) cluster: u64,
    /// The warp that ran or issued the op, by its index in the cluster.
    pub(crate) warp: u32,
    /// The op.
    pub(crate) site: u32,
    /// The warp or engine of the access.
    pub(crate) thread: u32,
    /// The segment, phase or number.
    pub(crate) clock: u32,
    /// The scope, if the access is strong.
    pub(crate) scope: Option<Scope>,
    pub(crate) lanes: AccessLanes,
}

/// The lanes of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AccessLanes {
    /// One lane or [`ALL_LANES`]; stored with each mark.
    Explicit,
    /// All lanes, with consecutive elements of `1 << shift` bytes. Byte 0 of the buffer would belong
    /// to lane `first`.
    Dense { shift: u8, first: u8 },
}

impl AccessLanes {
    /// Creates a dense access of `width` bytes per lane that starts at byte `start`.
    pub(crate) fn dense(start: u64, width: usize) -> Self {
        let shift = width.trailing_zeros() as u8;
        let first = (WARP as u64 - (start >> shift) % WARP as u64) as u8 % WARP as u8;
        AccessLanes::Dense { shift, first }
    }
}

/// An earlier access that the current one is not ordered after.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct GlobalConflict {
    pub(crate) earlier: GlobalRecord,
    /// Whether the earlier access wrote.
    pub(crate) wrote: bool,
    /// The first common byte of the buffer.
    pub(crate) byte: u64,
    pub(crate) reason: ConflictReason,
}

/// The reason for a conflict.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ConflictReason {
    /// The accesses are not ordered.
    Order,
    /// Both are strong, but their scopes do not include each other.
    Scope,
    /// One is a read-only load, whose bytes no thread may write during the launch.
    ReadOnly,
}

/// A conflict between two clusters that ran independently.
#[derive(Debug)]
pub(crate) struct ClusterConflict {
    /// The access of the later cluster.
    pub(crate) later: GlobalRecord,
    pub(crate) writes: bool,
    pub(crate) buffer: usize,
    /// The conflict with the earlier access.
    pub(crate) conflict: GlobalConflict,
}

/// An access to be checked.
#[derive(Clone, Copy)]
pub(crate) struct PendingAccess<'a> {
    pub(crate) record: GlobalRecord,
    /// The clock of its warp; `None` if it is ordered with no other cluster.
    pub(crate) clock: Option<&'a WarpClock>,
    /// The lane, or [`ALL_LANES`]; a dense access is checked per lane.
    pub(crate) lane: u8,
    pub(crate) writes: bool,
}

/// The shadow of global memory.
#[derive(Debug)]
pub(crate) struct GlobalShadow {
    /// Warps of a CTA.
    warps: u32,
    records: Vec<GlobalRecord>,
    /// A direct-mapped cache of recent records.
    memo: Box<[u32]>,
    compact_at: usize,
    /// By buffer number.
    buffers: Vec<Cells>,
    /// By buffer number: the last read-only load of each byte, stored as a write.
    read_only: Vec<Cells>,
    /// By word address: the clock released through it at GPU scope.
    released: HashMap<u64, Clock>,
}

const LANE_BITS: u32 = 6;

/// The entries of the record cache.
const MEMO: usize = 1024;

/// Records are compacted above this number, or above twice the number in use after the last
/// compaction.
const COMPACT: usize = 1 << 18;

fn mark(record: u32, lane: u8) -> Mark {
    record << LANE_BITS | u32::from(lane)
}

impl GlobalShadow {
    /// Creates an empty shadow; a CTA has `warps` warps.
    pub(crate) fn new(warps: u32) -> Self {
        let no_access = GlobalRecord {
            cluster: 0,
            warp: 0,
            site: 0,
            thread: 0,
            clock: 0,
            scope: None,
            lanes: AccessLanes::Explicit,
        };
        Self {
            warps,
            records: vec![no_access],
            memo: vec![0; MEMO].into(),
            compact_at: COMPACT,
            buffers: Vec::new(),
            read_only: Vec::new(),
            released: HashMap::new(),
        }
    }

    /// Returns an earlier access that the current one is not ordered after.
    pub(crate) fn check(
        &self,
        a: &PendingAccess<'_>,
        buffer: usize,
        range: &Range<u64>,
    ) -> Option<GlobalConflict> {
        if a.writes
            && let Some(c) = self.first_marked(&self.read_only, false, buffer, range)
        {
            return Some(c);
        }
        let cells = self.buffers.get(buffer)?;
        // Neighboring cells are often equal.
        let mut ordered = Cell::default();
        cells.find(range, &mut |cell, bytes| {
            if *cell == ordered {
                return None;
            }
            let reads = cell.reads.iter().filter(|_| a.writes);
            if reads
                .chain([&cell.write])
                .all(|&m| self.is_ordered_before(a, m))
            {
                ordered = *cell;
                return None;
            }
            self.check_cell(a, cell, bytes)
        })
    }

    /// Returns a conflict at the first byte with a write mark in `cells`.
    fn first_marked(
        &self,
        cells: &[Cells],
        wrote: bool,
        buffer: usize,
        range: &Range<u64>,
    ) -> Option<GlobalConflict> {
        cells.get(buffer)?.find(range, &mut |cell, bytes| {
            (cell.write != 0).then(|| GlobalConflict {
                earlier: self.records[(cell.write >> LANE_BITS) as usize],
                wrote,
                byte: bytes.start,
                reason: ConflictReason::ReadOnly,
            })
        })
    }

    /// Returns a write that conflicts with a read-only load.
    pub(crate) fn check_read_only(
        &self,
        buffer: usize,
        range: &Range<u64>,
    ) -> Option<GlobalConflict> {
        self.first_marked(&self.buffers, true, buffer, range)
    }

    /// Records a read-only load.
    pub(crate) fn record_read_only(&mut self, record: u32, buffer: usize, range: &Range<u64>) {
        if self.read_only.len() <= buffer {
            self.read_only.resize_with(buffer + 1, Cells::default);
        }
        let write = mark(record, ALL_LANES);
        let reads = [0; 2];
        self.read_only[buffer].fill(range, Cell { write, reads });
    }

    /// Whether an access is ordered before the current one for all bytes and lanes. A fast test: it
    /// may return false for an ordered access.
    fn is_ordered_before(&self, a: &PendingAccess<'_>, m: Mark) -> bool {
        let r = &self.records[(m >> LANE_BITS) as usize];
        m == 0 || self.scopes_include_each_other(r, &a.record) || self.all_have_seen(a, m)
    }

    fn check_cell(
        &self,
        a: &PendingAccess<'_>,
        cell: &Cell,
        bytes: Range<u64>,
    ) -> Option<GlobalConflict> {
        let reads = cell.reads.into_iter().filter(|_| a.writes);
        let marks = std::iter::once(cell.write).chain(reads);
        let (i, (m, byte)) = marks
            .enumerate()
            .filter(|(_, m)| *m != 0)
            .find_map(|(i, m)| Some((i, (m, self.unordered(a, m, &bytes)?))))?;
        let earlier = self.records[(m >> LANE_BITS) as usize];
        Some(GlobalConflict {
            earlier,
            wrote: i == 0,
            byte,
            reason: match earlier.scope.is_some() && a.record.scope.is_some() {
                true => ConflictReason::Scope,
                false => ConflictReason::Order,
            },
        })
    }

    /// Returns the first byte at which an access is not ordered after an earlier one.
    fn unordered(&self, a: &PendingAccess<'_>, m: Mark, bytes: &Range<u64>) -> Option<u64> {
        let r = &self.records[(m >> LANE_BITS) as usize];
        if self.is_ordered_before(a, m) {
            return None;
        }
        let same = r.cluster == a.record.cluster && r.thread == a.record.thread;
        if same && r.lanes != AccessLanes::Explicit && r.lanes == a.record.lanes {
            return None;
        }
        let has_seen = |byte: u64| {
            let checked_lane = lane_at(a.record.lanes, a.lane, byte);
            self.has_seen(a, checked_lane, m, byte)
        };
        bytes.clone().find(|&b| !has_seen(b))
    }

    /// Whether both accesses are strong and each is in the scope of the other; such accesses never
    /// conflict.
    fn scopes_include_each_other(&self, a: &GlobalRecord, b: &GlobalRecord) -> bool {
        let needed = match a.cluster == b.cluster {
            true if a.warp / self.warps == b.warp / self.warps => Scope::Cta,
            true => Scope::Cluster,
            false => Scope::Gpu,
        };
        let reaches = |t: &GlobalRecord| t.scope.is_some_and(|s| s >= needed);
        reaches(a) && reaches(b)
    }

    fn epoch(&self, m: Mark, byte: u64) -> Epoch {
        let r = &self.records[(m >> LANE_BITS) as usize];
        Epoch {
            thread: r.thread,
            lanes: mask_of(lane_at(r.lanes, (m & ((1 << LANE_BITS) - 1)) as u8, byte)),
            clock: r.clock,
        }
    }

    /// Whether a lane of the current access is ordered after an access to a byte.
    fn has_seen(&self, a: &PendingAccess<'_>, lane: u8, m: Mark, byte: u64) -> bool {
        let r = &self.records[(m >> LANE_BITS) as usize];
        let epoch = self.epoch(m, byte);
        a.clock
            .is_some_and(|c| match r.cluster == a.record.cluster {
                true => c.has_seen(lane, &epoch),
                false => c.has_seen_in_cluster(lane, r.cluster, &epoch),
            })
    }

    /// Whether all lanes of a warp may read the same bytes. A fast test: false does not imply a
    /// conflict.
    pub(crate) fn may_all_access(
        &self,
        a: &PendingAccess<'_>,
        buffer: usize,
        range: &Range<u64>,
    ) -> bool {
        let mut all = *a;
        all.record.lanes = AccessLanes::dense(0, 1);
        let mut unordered = |c: &Cell, _| (!self.is_ordered_before(&all, c.write)).then_some(());
        let cells = self.buffers.get(buffer);
        cells.is_none_or(|c| c.find(range, &mut unordered).is_none())
    }

    /// Whether every lane of the current access is ordered after all lanes of an access. A fast test:
    /// it may return false for an ordered access.
    fn all_have_seen(&self, a: &PendingAccess<'_>, m: Mark) -> bool {
        let r = &self.records[(m >> LANE_BITS) as usize];
        let Some(clock) = a.clock else { return false };
        let epoch = match r.lanes {
            AccessLanes::Explicit => self.epoch(m, 0),
            AccessLanes::Dense { .. } => Epoch {
                lanes: Mask::MAX,
                ..self.epoch(m, 0)
            },
        };
        match (r.cluster == a.record.cluster, a.record.lanes, r.lanes) {
            (false, _, _) => clock.all_have_seen_in_cluster(r.cluster, &epoch),
            // Both have one lane.
            (true, AccessLanes::Explicit, AccessLanes::Explicit) => clock.has_seen(a.lane, &epoch),
            (true, _, _) => clock.all_have_seen(&epoch),
        }
    }

    /// Records an access. The lanes of one op are recorded after all of them were checked.
    pub(crate) fn record_access(
        &mut self,
        a: &PendingAccess<'_>,
        record: u32,
        buffer: usize,
        range: &Range<u64>,
    ) {
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
                cells.update(range, &mut |cell| {
                    if cell != last.0 {
                        last = (cell, self.read(a, cell, new));
                    }
                    last.1
                });
            }
        }
        self.buffers[buffer] = cells;
    }

    /// Adds a read to a cell.
    fn read(&self, a: &PendingAccess<'_>, cell: Cell, new: Mark) -> Cell {
        let [first, last] = cell.reads;
        let is_superseded = |m: Mark| m == 0 || m == new || self.all_have_seen(a, m);
        let same = |m: Mark| m != 0 && m >> LANE_BITS == new >> LANE_BITS;
        let by_all_lanes = mark(new >> LANE_BITS, ALL_LANES);
        let reads = match (is_superseded(first), is_superseded(last)) {
            (true, true) => [new, 0],
            (true, false) => [new, last],
            (false, true) if same(first) => [by_all_lanes, 0],
            (false, _) if same(first) => [by_all_lanes, last],
            (false, true) => [first, new],
            (false, false) if same(last) => [first, by_all_lanes],
            // Keeps reads of two clusters, so that a writer in either conflicts with one.
            (false, false) => [first, self.keep_other_cluster(first, last, new)],
        };
        Cell { reads, ..cell }
    }

    /// Returns the read to keep beside `first`: `last` if only `last` is from another cluster than
    /// `first`, else `new`.
    fn keep_other_cluster(&self, first: Mark, last: Mark, new: Mark) -> Mark {
        let cluster = |m: Mark| self.records[(m >> LANE_BITS) as usize].cluster;
        match cluster(new) == cluster(first) && cluster(last) != cluster(first) {
            true => last,
            false => new,
        }
    }

    /// Returns the number of a record, valid until the next call.
    pub(crate) fn intern_record(&mut self, t: GlobalRecord) -> u32 {
        self.compact_if_large();
        let hash = t.cluster as usize * 131 + t.warp as usize * 31 + t.site as usize;
        let last = &mut self.memo[hash % MEMO];
        if *last == 0 || self.records[*last as usize] != t {
            *last = self.records.len() as u32;
            self.records.push(t);
        }
        *last
    }

    /// Drops unreferenced records if there are many.
    fn compact_if_large(&mut self) {
        if self.records.len() <= self.compact_at {
            return;
        }
        let mut kept = vec![self.records[0]];
        let mut renumbered = HashMap::new();
        for cells in self.buffers.iter_mut().chain(&mut self.read_only) {
            cells.map_marks(&mut |m| match m >> LANE_BITS {
                0 => 0,
                old => {
                    let new = *renumbered.entry(old).or_insert_with(|| {
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

    /// Merges the shadow of a cluster that ran independently; returns the first conflict with an
    /// earlier cluster.
    pub(crate) fn merge(&mut self, other: &GlobalShadow) -> Option<ClusterConflict> {
        for (buffer, cells) in other.buffers.iter().enumerate() {
            let found = cells.find_anywhere(&mut |cell, bytes| {
                let reads = cell.reads.map(|m| (m, false));
                let marks = [(cell.write, true)].into_iter().chain(reads);
                marks.filter(|(m, _)| *m != 0).find_map(|(m, writes)| {
                    let later = other.records[(m >> LANE_BITS) as usize];
                    let a = PendingAccess {
                        record: later,
                        clock: None,
                        lane: (m & ((1 << LANE_BITS) - 1)) as u8,
                        writes,
                    };
                    let conflict = self.check_other_clusters(&a, buffer, &bytes);
                    if conflict.is_none() {
                        let record = self.intern_record(later);
                        self.record_access(&a, record, buffer, &bytes);
                    }
                    conflict.map(|conflict| ClusterConflict {
                        later,
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
        self.merge_read_only(other)
    }

    /// Merges the read-only loads of a cluster.
    fn merge_read_only(&mut self, other: &GlobalShadow) -> Option<ClusterConflict> {
        other
            .read_only
            .iter()
            .enumerate()
            .find_map(|(buffer, cells)| {
                cells.find_anywhere(&mut |cell, bytes| {
                    if cell.write == 0 {
                        return None;
                    }
                    let later = other.records[(cell.write >> LANE_BITS) as usize];
                    if let Some(conflict) = self.check_read_only(buffer, &bytes) {
                        return Some(ClusterConflict {
                            later,
                            writes: false,
                            buffer,
                            conflict,
                        });
                    }
                    let record = self.intern_record(later);
                    self.record_read_only(record, buffer, &bytes);
                    None
                })
            })
    }

    /// Checks an access as [`check`](Self::check) does, against other clusters only.
    fn check_other_clusters(
        &self,
        a: &PendingAccess<'_>,
        buffer: usize,
        range: &Range<u64>,
    ) -> Option<GlobalConflict> {
        if a.writes
            && let Some(c) = self.first_marked(&self.read_only, false, buffer, range)
        {
            return Some(c);
        }
        let cells = self.buffers.get(buffer)?;
        cells.find(range, &mut |cell, bytes| {
            let of_other_clusters = |m: Mark| {
                let r = &self.records[(m >> LANE_BITS) as usize];
                if m != 0 && r.cluster != a.record.cluster {
                    m
                } else {
                    0
                }
            };
            let cell = Cell {
                write: of_other_clusters(cell.write),
                reads: cell.reads.map(of_other_clusters),
            };
            self.check_cell(a, &cell, bytes)
        })
    }

    /// Releases the clock of a cluster through a word to other clusters.
    pub(crate) fn release(&mut self, word: u64, cluster: u64, published: &Clock) {
        let entry = self.released.entry(word);
        let entry = entry.or_insert_with(|| published.empty_like());
        entry.other_clusters.join(&published.other_clusters);
        entry
            .other_clusters
            .join_cluster(cluster, &Arc::new(published.without_other_clusters()));
    }

    /// Returns the clock that other clusters released through a word.
    pub(crate) fn acquired(&self, word: u64) -> Option<&Clock> {
        self.released.get(&word)
    }
}

/// Returns the lane of an access at a byte.
fn lane_at(lanes: AccessLanes, explicit: u8, byte: u64) -> u8 {
    match lanes {
        AccessLanes::Explicit => explicit,
        AccessLanes::Dense { shift, first } => {
            (((byte >> shift) + u64::from(first)) % WARP as u64) as u8
        }
    }
}
