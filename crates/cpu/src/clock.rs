//! Happens-before: vector clocks over the warps and engines of a cluster.
//!
//! The execution of a warp is divided into numbered *segments*. A new segment starts at each release
//! and at each warp-level sync. An access happens before a point of the program if the clock of that
//! point includes the access's segment.
//!
//! Lanes of a warp are not ordered with each other. A lane releases its own segments and its clock.
//! Therefore a clock stores a warp per lane, exactly: *all lanes below `all_end`, the lanes of
//! `lanes` below `some_end`*, and further pieces in a list that is usually empty.
//!
//! Each engine is a thread with one number. Bytes that arrive at an mbarrier belong to the barrier's
//! thread, numbered by phase; wgmmas belong to the warpgroup's thread, numbered by instruction. A
//! wait that passes acquires the number.
//!
//! Bulk groups belong to the *lane* that issued them, and `cp.async` copies to the lanes that issued
//! them. The threads of a warp's bulk copies and of its copy stream are numbered by copy and stored
//! per lane, like a warp. A proxy fence marks the stream numbers in the clock as *fenced*; releases
//! publish those too.

use crate::other_clusters::OtherClusters;
use warpline_ir::Mask;

/// The numbering of the threads of a cluster: warps first, then engines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Threads {
    /// CTAs of the cluster.
    pub(crate) ctas: u32,
    /// Warps of one CTA.
    pub(crate) warps_per_cta: u32,
    /// mbarriers of one CTA.
    pub(crate) mbarriers_per_cta: u32,
    /// Whether the kernel uses `cp.async`.
    pub(crate) has_copy_streams: bool,
    /// Whether the kernel uses bulk groups.
    pub(crate) has_bulk_groups: bool,
}

impl Threads {
    fn engines_per_cta(&self) -> u32 {
        self.mbarriers_per_cta + self.warps_per_cta.div_ceil(4)
    }

    /// Returns the number of warps.
    pub(crate) fn all_warps(&self) -> u32 {
        self.ctas * self.warps_per_cta
    }

    /// Returns the number of threads that clocks store per lane: warps, bulk copies, copy
    /// streams.
    fn per_lane_threads(&self) -> u32 {
        let kinds = 1
            + if self.has_bulk_groups { 2 } else { 0 }
            + if self.has_copy_streams { 2 } else { 0 };
        self.all_warps() * kinds
    }

    /// Returns the thread of the reads of a warp's bulk groups; `warp` is the index in the cluster.
    pub(crate) fn bulk_reads(&self, warp: u32) -> u32 {
        self.all_warps() + warp
    }

    /// Returns the thread of the writes of a warp's bulk groups; `warp` is the index in the cluster.
    pub(crate) fn bulk_writes(&self, warp: u32) -> u32 {
        2 * self.all_warps() + warp
    }

    fn first_copy_stream(&self) -> u32 {
        self.all_warps() * if self.has_bulk_groups { 3 } else { 1 }
    }

    /// Returns the `cp.async` stream of a warp; `warp` is the index in the cluster.
    pub(crate) fn copy_stream(&self, warp: u32) -> u32 {
        self.first_copy_stream() + warp
    }

    /// Returns the warp of a copy stream.
    pub(crate) fn warp_of_copy_stream(&self, thread: u32) -> Option<u32> {
        let warp = thread.checked_sub(self.first_copy_stream())?;
        (self.has_copy_streams && warp < self.all_warps()).then_some(warp)
    }

    /// Returns the thread of the fenced part of a warp's copy stream.
    pub(crate) fn fenced_copy_stream(&self, warp: u32) -> u32 {
        self.copy_stream(warp) + self.all_warps()
    }

    /// Returns the number of engines.
    fn all_engines(&self) -> u32 {
        self.ctas * self.engines_per_cta()
    }

    /// Returns the engine of an mbarrier.
    pub(crate) fn barrier(&self, cta: u32, slot: u32) -> u32 {
        self.per_lane_threads() + cta * self.engines_per_cta() + slot
    }

    /// Returns the engine of a warp's warpgroup; `warp` is the index in the cluster.
    pub(crate) fn wgmma(&self, warp: u32) -> u32 {
        let (cta, warp) = (warp / self.warps_per_cta, warp % self.warps_per_cta);
        self.per_lane_threads() + cta * self.engines_per_cta() + self.mbarriers_per_cta + warp / 4
    }
}

/// An epoch: one clock value of some lanes of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Epoch {
    /// A warp or an engine.
    pub(crate) thread: u32,
    /// The lanes; all of them for an engine without lanes.
    pub(crate) lanes: Mask,
    /// The segment, phase or number.
    pub(crate) clock: u32,
}

/// The clock of one warp, without the pieces in the list.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct LaneClock {
    /// All lanes are included below this segment.
    all_end: u32,
    /// The lanes of `lanes` are included below this segment, if it exceeds `all_end`.
    some_end: u32,
    lanes: Mask,
}

impl LaneClock {
    /// Creates a clock that includes the segments of some lanes below `end`.
    fn of(lanes: Mask, end: u32) -> Self {
        let all_end = if lanes == Mask::MAX { end } else { 0 };
        let some_end = end;
        Self {
            all_end,
            some_end,
            lanes,
        }
    }

    /// Returns the lanes for which a clock value is included.
    #[inline]
    fn covered_lanes(&self, clock: u32) -> Mask {
        match clock {
            c if c < self.all_end => Mask::MAX,
            c if c < self.some_end => self.lanes,
            _ => 0,
        }
    }

    /// Joins another clock; returns the piece that does not fit.
    #[inline]
    fn join(&mut self, other: &LaneClock) -> Option<(Mask, u32)> {
        self.all_end = self.all_end.max(other.all_end);
        if other.some_end <= self.all_end {
            return None;
        }
        if self.some_end <= self.all_end {
            (self.some_end, self.lanes) = (other.some_end, other.lanes);
            return None;
        }
        self.join_some(other.lanes, other.some_end)
    }

    fn join_some(&mut self, lanes: Mask, some_end: u32) -> Option<(Mask, u32)> {
        if some_end == self.some_end {
            self.lanes |= lanes;
        } else if some_end < self.some_end {
            let rest = lanes & !self.lanes;
            return (rest != 0).then_some((rest, some_end));
        } else {
            let rest = self.lanes & !lanes;
            let piece = (rest != 0).then_some((rest, self.some_end));
            (self.some_end, self.lanes) = (some_end, lanes);
            return piece;
        }
        if self.lanes == Mask::MAX {
            self.all_end = self.some_end;
        }
        None
    }
}

/// A further piece of a warp's clock: its lanes are included below `end`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct ClockPiece {
    thread: u32,
    lanes: Mask,
    end: u32,
}

/// A vector clock over all threads of a cluster.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    /// Threads that are stored per lane.
    per_lane: Box<[LaneClock]>,
    /// Pieces that do not fit in `per_lane`.
    pieces: Vec<ClockPiece>,
    /// By engine: numbers below are included.
    engines: Box<[u32]>,
    /// The clocks of other clusters.
    pub(crate) other_clusters: OtherClusters,
}

impl Clock {
    /// Creates an empty clock.
    pub(crate) fn new(t: &Threads) -> Self {
        Self {
            per_lane: vec![LaneClock::default(); t.per_lane_threads() as usize].into(),
            pieces: Vec::new(),
            engines: vec![0; t.all_engines() as usize].into(),
            other_clusters: OtherClusters::default(),
        }
    }

    /// Creates an empty clock of the same threads.
    pub(crate) fn empty_like(&self) -> Self {
        Self {
            per_lane: vec![LaneClock::default(); self.per_lane.len()].into(),
            pieces: Vec::new(),
            engines: vec![0; self.engines.len()].into(),
            other_clusters: OtherClusters::default(),
        }
    }

    /// Returns the clock without those of other clusters.
    pub(crate) fn without_other_clusters(&self) -> Self {
        Self {
            other_clusters: OtherClusters::default(),
            ..self.clone()
        }
    }

    /// Joins another clock.
    pub(crate) fn join(&mut self, other: &Clock) {
        for (thread, (a, b)) in (0..).zip(self.per_lane.iter_mut().zip(&other.per_lane)) {
            if let Some((lanes, end)) = a.join(b) {
                self.pieces.push(ClockPiece { thread, lanes, end });
            }
        }
        if !self.pieces.is_empty() || !other.pieces.is_empty() {
            self.join_pieces(&other.pieces);
        }
        for (a, b) in self.engines.iter_mut().zip(&other.engines) {
            *a = (*a).max(*b);
        }
        self.other_clusters.join(&other.other_clusters);
    }

    #[cold]
    fn join_pieces(&mut self, others: &[ClockPiece]) {
        let mut all = std::mem::take(&mut self.pieces);
        all.extend_from_slice(others);
        for p in all {
            self.advance_lanes(p.thread, p.lanes, p.end);
        }
    }

    /// Includes the segments of some lanes of a thread below `end`. The pieces of a thread are
    /// disjoint in lanes, so there are at most 32.
    pub(crate) fn advance_lanes(&mut self, thread: u32, lanes: Mask, end: u32) {
        let stored = &mut self.per_lane[thread as usize];
        let Some((mut lanes, end)) = stored.join(&LaneClock::of(lanes, end)) else {
            return;
        };
        let all_end = stored.all_end;
        self.pieces.retain_mut(|p| {
            if p.thread != thread {
                return true;
            }
            match p.end >= end {
                true => lanes &= !p.lanes,
                false => p.lanes &= !lanes,
            }
            p.lanes != 0 && p.end > all_end
        });
        if lanes != 0 {
            self.pieces.push(ClockPiece { thread, lanes, end });
        }
    }

    /// Replaces this clock by another.
    pub(crate) fn copy_from(&mut self, other: &Clock) {
        self.per_lane.copy_from_slice(&other.per_lane);
        self.pieces.clone_from(&other.pieces);
        self.engines.copy_from_slice(&other.engines);
        self.other_clusters = other.other_clusters.clone();
    }

    /// Includes the numbers of an engine below `end`.
    pub(crate) fn advance_engine(&mut self, engine: u32, end: u32) {
        let e = &mut self.engines[engine as usize - self.per_lane.len()];
        *e = (*e).max(end);
    }

    /// Marks the stream numbers of some warps as fenced.
    pub(crate) fn fence_streams(&mut self, t: &Threads, warps: &std::ops::Range<u32>) {
        for warp in warps.clone() {
            let (stream, fenced) = (t.copy_stream(warp), t.fenced_copy_stream(warp));
            let known = self.per_lane[stream as usize];
            self.advance_lanes(fenced, Mask::MAX, known.all_end);
            self.advance_lanes(fenced, known.lanes, known.some_end);
            let further = self.pieces.iter().filter(|p| p.thread == stream);
            for p in further.copied().collect::<Vec<_>>() {
                self.advance_lanes(fenced, p.lanes, p.end);
            }
        }
    }

    /// Returns the lanes of a thread for which a clock value is included.
    #[inline]
    pub(crate) fn covered_lanes(&self, thread: u32, clock: u32) -> Mask {
        let Some(known) = self.per_lane.get(thread as usize) else {
            let end = self.engines[thread as usize - self.per_lane.len()];
            return if clock < end { Mask::MAX } else { 0 };
        };
        let pieces = self.pieces.iter();
        let pieces = pieces.filter(|p| p.thread == thread && clock < p.end);
        pieces.fold(known.covered_lanes(clock), |m, p| m | p.lanes)
    }

    #[inline]
    pub(crate) fn has_seen(&self, m: &Epoch) -> bool {
        m.lanes & !self.covered_lanes(m.thread, m.clock) == 0
    }
}
