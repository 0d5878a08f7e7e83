//! Who knows of what: vector clocks over the warps and engines of a cluster.
//!
//! A warp's life is cut into *segments*, numbered up; a new one starts at each
//! release and at each warp-level sync. An access happened before a point of
//! the program if that point *knows* the segment it was in.
//!
//! Lanes do not know of each other by themselves: what a lane releases is its
//! own segments, plus what it knows of others. So a warp is known lane by
//! lane, and exactly: *all lanes below `full`, the lanes of `lanes` below
//! `part`*, and, where that is not enough, some further pieces in a list that
//! is empty for nearly all clocks.
//!
//! Engines are threads of their own, with one number each. Bytes that arrive
//! on an mbarrier belong to the thread of that barrier, numbered by its phase;
//! wgmmas to the thread of the warpgroup, numbered by instruction. A wait that
//! passes makes the number known.
//!
//! Bulk groups belong to the *lane* that issued them, and `cp.async` copies to
//! the lanes that did: the threads of a warp's bulk copies and of its copy
//! stream are numbered by copy, and known lane by lane, as a warp is. What is
//! known of a stream when a proxy fence runs is known as *fenced*, and handed
//! on like the rest.

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
    /// Are there bulk groups?
    pub(crate) bulks: bool,
}

impl Threads {
    fn engines_per_cta(&self) -> u32 {
        self.bars + self.warps.div_ceil(4)
    }

    /// All warps.
    pub(crate) fn all_warps(&self) -> u32 {
        self.ctas * self.warps
    }

    /// All threads that are known lane by lane: warps, their bulk copies, their streams.
    fn laned(&self) -> u32 {
        let kinds = 1 + if self.bulks { 2 } else { 0 } + if self.streams { 2 } else { 0 };
        self.all_warps() * kinds
    }

    /// What a warp's bulk groups read; warps are counted through the cluster.
    pub(crate) fn bulk(&self, warp: u32) -> u32 {
        self.all_warps() + warp
    }

    /// What a warp's bulk groups write; warps are counted through the cluster.
    pub(crate) fn bulk_writes(&self, warp: u32) -> u32 {
        2 * self.all_warps() + warp
    }

    fn first_stream(&self) -> u32 {
        self.all_warps() * if self.bulks { 3 } else { 1 }
    }

    /// The stream of a warp; warps are counted through the cluster.
    pub(crate) fn stream(&self, warp: u32) -> u32 {
        self.first_stream() + warp
    }

    /// The warp of a thread that is a stream.
    pub(crate) fn streaming(&self, thread: u32) -> Option<u32> {
        let warp = thread.checked_sub(self.first_stream())?;
        (self.streams && warp < self.all_warps()).then_some(warp)
    }

    /// The stream of a warp as far as it is fenced.
    pub(crate) fn fenced(&self, warp: u32) -> u32 {
        self.stream(warp) + self.all_warps()
    }

    /// All engines.
    fn all_engines(&self) -> u32 {
        self.ctas * self.engines_per_cta()
    }

    /// The engine of an mbarrier.
    pub(crate) fn barrier(&self, cta: u32, slot: u32) -> u32 {
        self.laned() + cta * self.engines_per_cta() + slot
    }

    /// The engine of a warp's warpgroup; warps are counted through the cluster.
    pub(crate) fn wgmma(&self, warp: u32) -> u32 {
        let (cta, warp) = (warp / self.warps, warp % self.warps);
        self.laned() + cta * self.engines_per_cta() + self.bars + warp / 4
    }
}

/// One moment of some lanes of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Moment {
    /// A warp or an engine.
    pub(crate) thread: u32,
    /// The lanes; all of them for an engine that has none.
    pub(crate) lanes: Mask,
    /// The segment, phase or number.
    pub(crate) clock: u32,
}

/// What is known of one warp, but for the pieces that its clock lists.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Known {
    /// All lanes, below this segment.
    full: u32,
    /// The lanes of `lanes`, below this segment; nothing if it is not above `full`.
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

    /// The lanes that are known to be past a number.
    #[inline]
    fn covered(&self, clock: u32) -> Mask {
        match clock {
            c if c < self.full => Mask::MAX,
            c if c < self.part => self.lanes,
            _ => 0,
        }
    }

    /// Adds what another knows; gives back the piece that has no room here.
    #[inline]
    fn join(&mut self, other: &Known) -> Option<(Mask, u32)> {
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

/// More that is known of some lanes of a warp.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Piece {
    thread: u32,
    lanes: Mask,
    past: u32,
}

/// What is known of every thread.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    /// Threads that are known lane by lane.
    warps: Box<[Known]>,
    /// What `warps` has no room for.
    pieces: Vec<Piece>,
    engines: Box<[u32]>,
    /// What is known of other clusters.
    pub(crate) far: Far,
}

impl Clock {
    /// Nothing.
    pub(crate) fn new(t: &Threads) -> Self {
        Self {
            warps: vec![Known::default(); t.laned() as usize].into(),
            pieces: Vec::new(),
            engines: vec![0; t.all_engines() as usize].into(),
            far: Far::default(),
        }
    }

    /// Nothing, of the same threads.
    pub(crate) fn nothing(&self) -> Self {
        Self {
            warps: vec![Known::default(); self.warps.len()].into(),
            pieces: Vec::new(),
            engines: vec![0; self.engines.len()].into(),
            far: Far::default(),
        }
    }

    /// What is known of the own cluster alone.
    pub(crate) fn near(&self) -> Self {
        Self {
            far: Far::default(),
            ..self.clone()
        }
    }

    /// Adds what another knows.
    pub(crate) fn join(&mut self, other: &Clock) {
        for (thread, (a, b)) in (0..).zip(self.warps.iter_mut().zip(&other.warps)) {
            if let Some((lanes, past)) = a.join(b) {
                self.pieces.push(Piece {
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
        self.far.join(&other.far);
    }

    #[cold]
    fn join_pieces(&mut self, others: &[Piece]) {
        let mut all = std::mem::take(&mut self.pieces);
        all.extend_from_slice(others);
        for p in all {
            self.know(p.thread, p.lanes, p.past);
        }
    }

    /// Learns that some lanes of a thread are past a number. The pieces of a
    /// thread have no lane in common, so that there are at most 32.
    pub(crate) fn know(&mut self, thread: u32, lanes: Mask, past: u32) {
        let known = &mut self.warps[thread as usize];
        let Some((mut lanes, past)) = known.join(&Known::of(lanes, past)) else {
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
            self.pieces.push(Piece {
                thread,
                lanes,
                past,
            });
        }
    }

    /// Takes over what another knows, and forgets the rest.
    pub(crate) fn copy(&mut self, other: &Clock) {
        self.warps.copy_from_slice(&other.warps);
        self.pieces.clone_from(&other.pieces);
        self.engines.copy_from_slice(&other.engines);
        self.far = other.far.clone();
    }

    /// Learns that an engine is past a number.
    pub(crate) fn learn(&mut self, engine: u32, past: u32) {
        let e = &mut self.engines[engine as usize - self.warps.len()];
        *e = (*e).max(past);
    }

    /// What is known of the streams of some warps is known as fenced.
    pub(crate) fn fence_streams(&mut self, t: &Threads, warps: &std::ops::Range<u32>) {
        for warp in warps.clone() {
            let (stream, fenced) = (t.stream(warp), t.fenced(warp));
            let known = self.warps[stream as usize];
            self.know(fenced, Mask::MAX, known.full);
            self.know(fenced, known.lanes, known.part);
            let more = self.pieces.iter().filter(|p| p.thread == stream);
            for p in more.copied().collect::<Vec<_>>() {
                self.know(fenced, p.lanes, p.past);
            }
        }
    }

    /// The lanes of a thread that are known to be past a number.
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
    pub(crate) fn knows(&self, m: &Moment) -> bool {
        m.lanes & !self.covered(m.thread, m.clock) == 0
    }
}
