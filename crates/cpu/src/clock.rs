//! Happens-before: vector clocks over the warps and engines of a cluster.
//!
//! The execution of a warp is divided into numbered *segments*; a new one starts at each release and
//! at each warp-level sync. An access happens before a point of the program if the clock of that
//! point includes the access's segment.
//!
//! Lanes of a warp are not ordered with each other. A lane releases its own segments and its clock.
//! Therefore a clock stores a warp per lane, exactly: *all lanes below `full`, the lanes of `lanes`
//! below `part`*, and further pieces in a list that is usually empty.
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
    /// CTAs.
    pub(crate) ctas: u32,
    /// Warps of one CTA.
    pub(crate) warps: u32,
    /// mbarriers of one CTA.
    pub(crate) bars: u32,
    /// Whether the kernel uses `cp.async`.
    pub(crate) streams: bool,
    /// Whether the kernel uses bulk groups.
    pub(crate) bulks: bool,
}

impl Threads {
    fn engines_per_cta(&self) -> u32 {
        self.bars + self.warps.div_ceil(4)
    }

    /// Returns the number of warps.
    pub(crate) fn all_warps(&self) -> u32 {
        self.ctas * self.warps
    }

    /// Returns the number of threads that clocks store per lane: warps, bulk copies, streams.
    fn per_lane_threads(&self) -> u32 {
        let kinds = 1 + if self.bulks { 2 } else { 0 } + if self.streams { 2 } else { 0 };
        self.all_warps() * kinds
    }

    /// Returns the thread of the reads of a warp's bulk groups; `warp` is the index in the cluster.
    pub(crate) fn bulk(&self, warp: u32) -> u32 {
        self.all_warps() + warp
    }

    /// Returns the thread of the writes of a warp's bulk groups; `warp` is the index in the cluster.
    pub(crate) fn bulk_writes(&self, warp: u32) -> u32 {
        2 * self.all_warps() + warp
    }

    fn first_stream(&self) -> u32 {
        self.all_warps() * if self.bulks { 3 } else { 1 }
    }

    /// Returns the `cp.async` stream of a warp; `warp` is the index in the cluster.
    pub(crate) fn stream(&self, warp: u32) -> u32 {
        self.first_stream() + warp
    }

    /// Returns the warp of a stream thread.
    pub(crate) fn warp_of_stream(&self, thread: u32) -> Option<u32> {
        let warp = thread.checked_sub(self.first_stream())?;
        (self.streams && warp < self.all_warps()).then_some(warp)
    }

    /// Returns the thread of the fenced part of a warp's stream.
    pub(crate) fn fenced(&self, warp: u32) -> u32 {
        self.stream(warp) + self.all_warps()
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
        let (cta, warp) = (warp / self.warps, warp % self.warps);
        self.per_lane_threads() + cta * self.engines_per_cta() + self.bars + warp / 4
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
    full: u32,
    /// The lanes of `lanes` are included below this segment, if it exceeds `full`.
    part: u32,
    lanes: Mask,
}

impl LaneClock {
    /// Creates the clock of some lanes below a number.
    fn of(lanes: Mask, past: u32) -> Self {
        let full = if lanes == Mask::MAX { past } else { 0 };
        let part = past;
        Self { full, part, lanes }
    }

    /// Returns the lanes for which a clock value is included.
    #[inline]
    fn covered(&self, clock: u32) -> Mask {
        match clock {
            c if c < self.full => Mask::MAX,
            c if c < self.part => self.lanes,
            _ => 0,
        }
    }

    /// Joins another clock; returns the piece that does not fit.
    #[inline]
    fn join(&mut self, other: &LaneClock) -> Option<(Mask, u32)> {
        self.full = self.full.max(other.full);
        if other.part <= self.full {
            return None;
        }
        if self.part <= self.full {
            (self.part, self.lanes) = (other.part, other.lanes);
            return None;
        }
        self.join_parts(other.lanes, other.part)
    }

    fn join_parts(&mut self, lanes: Mask, part: u32) -> Option<(Mask, u32)> {
        if part == self.part {
            self.lanes |= lanes;
        } else if part < self.part {
            let left = lanes & !self.lanes;
            return (left != 0).then_some((left, part));
        } else {
            let left = self.lanes & !lanes;
            let piece = (left != 0).then_some((left, self.part));
            (self.part, self.lanes) = (part, lanes);
            return piece;
        }
        if self.lanes == Mask::MAX {
            self.full = self.part;
        }
        None
    }
}

/// A further piece of a warp's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct ClockPiece {
    thread: u32,
    lanes: Mask,
    past: u32,
}

/// A vector clock over all threads of a cluster.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    /// Threads that are stored per lane.
    warps: Box<[LaneClock]>,
    /// Pieces that do not fit in `warps`.
    pieces: Vec<ClockPiece>,
    engines: Box<[u32]>,
    /// The clocks of other clusters.
    pub(crate) other_clusters: OtherClusters,
}

impl Clock {
    /// Creates an empty clock.
    pub(crate) fn new(t: &Threads) -> Self {
        Self {
            warps: vec![LaneClock::default(); t.per_lane_threads() as usize].into(),
            pieces: Vec::new(),
            engines: vec![0; t.all_engines() as usize].into(),
            other_clusters: OtherClusters::default(),
        }
    }

    /// Creates an empty clock of the same threads.
    pub(crate) fn empty_like(&self) -> Self {
        Self {
            warps: vec![LaneClock::default(); self.warps.len()].into(),
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
        for (thread, (a, b)) in (0..).zip(self.warps.iter_mut().zip(&other.warps)) {
            if let Some((lanes, past)) = a.join(b) {
                self.pieces.push(ClockPiece {
                    thread,
                    lanes,
                    past,
                });
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
            self.advance_lanes(p.thread, p.lanes, p.past);
        }
    }

    /// Advances some lanes of a thread to a number. The pieces of a thread are disjoint in lanes,
    /// so there are at most 32.
    pub(crate) fn advance_lanes(&mut self, thread: u32, lanes: Mask, past: u32) {
        let known = &mut self.warps[thread as usize];
        let Some((mut lanes, past)) = known.join(&LaneClock::of(lanes, past)) else {
            return;
        };
        let full = known.full;
        self.pieces.retain_mut(|p| {
            if p.thread != thread {
                return true;
            }
            match p.past >= past {
                true => lanes &= !p.lanes,
                false => p.lanes &= !lanes,
            }
            p.lanes != 0 && p.past > full
        });
        if lanes != 0 {
            self.pieces.push(ClockPiece {
                thread,
                lanes,
                past,
            });
        }
    }

    /// Replaces this clock by another.
    pub(crate) fn copy(&mut self, other: &Clock) {
        self.warps.copy_from_slice(&other.warps);
        self.pieces.clone_from(&other.pieces);
        self.engines.copy_from_slice(&other.engines);
        self.other_clusters = other.other_clusters.clone();
    }

    /// Advances an engine to a number.
    pub(crate) fn learn(&mut self, engine: u32, past: u32) {
        let e = &mut self.engines[engine as usize - self.warps.len()];
        *e = (*e).max(past);
    }

    /// Marks the stream numbers of some warps as fenced.
    pub(crate) fn fence_streams(&mut self, t: &Threads, warps: &std::ops::Range<u32>) {
        for warp in warps.clone() {
            let (stream, fenced) = (t.stream(warp), t.fenced(warp));
            let known = self.warps[stream as usize];
            self.advance_lanes(fenced, Mask::MAX, known.full);
            self.advance_lanes(fenced, known.lanes, known.part);
            let more = self.pieces.iter().filter(|p| p.thread == stream);
            for p in more.copied().collect::<Vec<_>>() {
                self.advance_lanes(fenced, p.lanes, p.past);
            }
        }
    }

    /// Returns the lanes of a thread for which a clock value is included.
    #[inline]
    pub(crate) fn covered(&self, thread: u32, clock: u32) -> Mask {
        let Some(known) = self.warps.get(thread as usize) else {
            let past = self.engines[thread as usize - self.warps.len()];
            return if clock < past { Mask::MAX } else { 0 };
        };
        let more = self.pieces.iter();
        let more = more.filter(|p| p.thread == thread && clock < p.past);
        more.fold(known.covered(clock), |m, p| m | p.lanes)
    }

    #[inline]
    pub(crate) fn has_seen(&self, m: &Epoch) -> bool {
        m.lanes & !self.covered(m.thread, m.clock) == 0
    }
}
