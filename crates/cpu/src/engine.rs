//! Asynchronous engines: copies and wgmmas between issue and completion.
//!
//! The pieces of a copy complete in any order. A copy of a bulk group takes two steps per piece:
//! the read of its source and the write of its destination. `wait_group.read` waits only for the
//! reads. A wgmma is one event of its warpgroup. It can complete when all four warps have issued
//! their part, and wgmmas complete in order.

use crate::bulk_groups::BulkGroups;
use crate::clock::{Clock, Threads};
use crate::lane_copies::LaneCopies;
use crate::warp::Warp;
use std::collections::VecDeque;
use warpline_ir::job::WgmmaJob;
use warpline_ir::{Job, JobCompletion, ResolvedAddress, ResolvedBarrier, Span};

/// The asynchronous ops in flight in a cluster.
#[derive(Debug)]
pub(crate) struct Engines {
    /// Copies, oldest first.
    pub(crate) copies: Vec<Copy>,
    /// Bulk groups, by warp of the cluster.
    pub(crate) groups: Vec<BulkGroups>,
    /// `cp.async` copies, by warp of the cluster.
    pub(crate) lane_copies: Vec<LaneCopies>,
    /// wgmmas, by warpgroup of the cluster.
    pub(crate) wgmmas: Vec<WgmmaQueue>,
    warps_per_cta: u32,
    /// The number of issued ops.
    issued: u64,
}

/// A copy in flight.
#[derive(Debug)]
pub(crate) struct Copy {
    /// The issue number.
    pub(crate) number: u64,
    pub(crate) job: Job,
    /// The issuing warp, by its index in the cluster.
    pub(crate) warp: u32,
    /// The issuing op.
    pub(crate) site: u32,
    /// The bulk group of the copy.
    pub(crate) group: Option<u64>,
    /// The number among the warp's `cp.async` copies, if the copy is one of them.
    pub(crate) stream_number: Option<u32>,
    /// The clock of the issuer.
    pub(crate) clock: Option<Box<Clock>>,
    pub(crate) pieces: Vec<PieceState>,
}

/// The progress of a piece of a copy.
#[derive(Debug)]
pub(crate) enum PieceState {
    /// Not started.
    Issued,
    /// The source is read.
    Read(VecDeque<Box<[u8]>>),
    /// Complete.
    Done,
}

impl Copy {
    /// Whether the copy reads and writes in separate steps.
    pub(crate) fn has_two_steps(&self) -> bool {
        self.group.is_some()
    }

    /// Whether the copy is a `cp.async` of `lane` with a number below `end`.
    pub(crate) fn is_of_lane(&self, lane: u32, end: u32) -> bool {
        let JobCompletion::CopyGroup { lanes } = self.job.completion() else {
            return false;
        };
        lanes >> lane & 1 == 1 && self.stream_number.is_some_and(|n| n < end)
    }

    /// Whether all sources are read.
    pub(crate) fn is_read(&self) -> bool {
        self.pieces.iter().all(|p| !matches!(p, PieceState::Issued))
    }

    pub(crate) fn is_done(&self) -> bool {
        self.pieces.iter().all(|p| matches!(p, PieceState::Done))
    }

    /// Returns the incomplete pieces.
    pub(crate) fn open_pieces(&self) -> impl Iterator<Item = usize> {
        let open = |(i, p): (usize, &PieceState)| (!matches!(p, PieceState::Done)).then_some(i);
        self.pieces.iter().enumerate().filter_map(open)
    }

    /// Returns the pieces whose source is not read.
    pub(crate) fn unread_pieces(&self) -> impl Iterator<Item = usize> {
        let unread = |(i, p): (usize, &PieceState)| matches!(p, PieceState::Issued).then_some(i);
        self.pieces.iter().enumerate().filter_map(unread)
    }
}

/// The wgmmas of one warpgroup.
#[derive(Debug, Default)]
pub(crate) struct WgmmaQueue {
    /// The number of completed wgmmas.
    pub(crate) done: u32,
    pub(crate) queue: VecDeque<PendingWgmma>,
}

/// A wgmma in flight.
#[derive(Debug)]
pub(crate) struct PendingWgmma {
    number: u64,
    pub(crate) site: u32,
    /// By warp of the warpgroup.
    pub(crate) parts: [Option<WgmmaJob>; 4],
}

impl WgmmaQueue {
    /// Returns the issue number of the oldest wgmma, if all four warps have issued it.
    pub(crate) fn ready(&self) -> Option<u64> {
        let p = self.queue.front()?;
        p.parts.iter().all(Option::is_some).then_some(p.number)
    }

    /// Returns the number of warps that have issued the oldest wgmma.
    pub(crate) fn warps_issued(&self) -> u32 {
        self.queue
            .front()
            .map_or(0, |p| p.parts.iter().flatten().count() as u32)
    }
}

impl Engines {
    /// Creates engines without ops.
    pub(crate) fn new(t: &Threads) -> Self {
        let groups = t.ctas * t.warps_per_cta.div_ceil(4);
        Self {
            copies: Vec::new(),
            groups: (0..t.all_warps()).map(|_| BulkGroups::default()).collect(),
            lane_copies: (0..t.all_warps()).map(|_| LaneCopies::default()).collect(),
            wgmmas: (0..groups).map(|_| WgmmaQueue::default()).collect(),
            warps_per_cta: t.warps_per_cta,
            issued: 0,
        }
    }

    fn warpgroup(&self, w: &Warp) -> usize {
        (w.cta * self.warps_per_cta.div_ceil(4) + w.index / 4) as usize
    }

    /// Returns the wgmmas of a warp's warpgroup.
    pub(crate) fn wgmma_queue(&self, w: &Warp) -> &WgmmaQueue {
        self.wgmma_queue_and_group(w).1
    }

    /// Returns the index of a warp's warpgroup in the cluster, and the wgmmas of that warpgroup.
    pub(crate) fn wgmma_queue_and_group(&self, w: &Warp) -> (usize, &WgmmaQueue) {
        let group = self.warpgroup(w);
        (group, &self.wgmmas[group])
    }

    /// Adds a copy.
    pub(crate) fn add_copy(
        &mut self,
        job: Job,
        warp: &mut Warp,
        site: u32,
        clock: Option<Box<Clock>>,
    ) {
        self.issued += 1;
        let group = match job.completion() {
            JobCompletion::BulkGroup { lane } => {
                warp.bulk_copies += 1;
                Some(self.groups[warp.id as usize].add_copy(lane, warp.bulk_copies - 1))
            }
            _ => None,
        };
        let stream_number = match job.completion() {
            JobCompletion::CopyGroup { lanes } => {
                Some(self.lane_copies[warp.id as usize].issue(lanes))
            }
            _ => None,
        };
        let pieces = (0..job.pieces()).map(|_| PieceState::Issued).collect();
        self.copies.push(Copy {
            number: self.issued,
            job,
            warp: warp.id,
            site,
            group,
            stream_number,
            clock,
            pieces,
        });
    }

    /// Adds the part of one warp to the `index`th wgmma of its warpgroup. Returns the op of the first
    /// part if that is another op.
    pub(crate) fn add_wgmma(
        &mut self,
        job: WgmmaJob,
        index: u32,
        warp: &Warp,
        site: u32,
    ) -> Option<u32> {
        self.issued += 1;
        let number = self.issued;
        let group = self.warpgroup(warp);
        let p = &mut self.wgmmas[group];
        let at = (index - p.done) as usize;
        if at == p.queue.len() {
            p.queue.push_back(PendingWgmma {
                number,
                site,
                parts: [const { None }; 4],
            });
        }
        let pending = &mut p.queue[at];
        pending.parts[(warp.index % 4) as usize] = Some(job);
        (pending.site != site).then_some(pending.site)
    }

    /// Returns the warpgroups whose oldest wgmma can complete, with its issue number.
    pub(crate) fn ready_wgmmas(&self) -> impl Iterator<Item = (usize, u64)> {
        let ready = |(i, p): (usize, &WgmmaQueue)| p.ready().map(|n| (i, n));
        self.wgmmas.iter().enumerate().filter_map(ready)
    }

    /// Returns the warp and op of an asynchronous op on the shared memory of a CTA.
    pub(crate) fn in_flight_on_cta(&self, cta: u32) -> Option<(u32, u32)> {
        self.find(true, |s| matches!(s, Span::Shared(at, _) if at.cta == cta))
    }

    /// Returns the warp and op of an asynchronous op that conflicts with an access to a byte.
    pub(crate) fn in_flight_at(&self, at: ResolvedAddress, write: bool) -> Option<(u32, u32)> {
        self.find(write, |s| match s {
            Span::Shared(from, len) => {
                from.cta == at.cta && (from.byte..from.byte + len).contains(&at.byte)
            }
            Span::Global(..) => false,
        })
    }

    /// Returns the warp and op of the first asynchronous op that writes a matching span, or reads
    /// one if `reads`.
    fn find(&self, reads: bool, matches: impl Fn(Span) -> bool) -> Option<(u32, u32)> {
        for c in &self.copies {
            let mut hit = false;
            c.job.writes(&mut |s| hit |= matches(s));
            if reads && !c.is_read() {
                c.job.reads(&mut |s| hit |= matches(s));
            }
            if hit {
                return Some((c.warp, c.site));
            }
        }
        for (group, p) in self.wgmmas.iter().enumerate().filter(|_| reads) {
            for pending in &p.queue {
                for (i, job) in pending.parts.iter().enumerate() {
                    let mut hit = false;
                    job.iter().for_each(|j| j.reads(&mut |s| hit |= matches(s)));
                    if hit {
                        return Some((self.first_warp(group) + i as u32, pending.site));
                    }
                }
            }
        }
        None
    }

    /// Returns the first warp of a warpgroup; both are indices in the cluster.
    pub(crate) fn first_warp(&self, group: usize) -> u32 {
        let per_cta = self.warps_per_cta.div_ceil(4);
        let group = group as u32;
        group / per_cta * self.warps_per_cta + group % per_cta * 4
    }

    /// Whether an arrival at `bar` waits for a `cp.async` copy.
    pub(crate) fn arrival_needs(&self, copy: &Copy, bar: ResolvedBarrier) -> bool {
        let copies = &self.lane_copies[copy.warp as usize];
        copy.stream_number
            .is_some_and(|n| copies.arrival_needs(bar, n))
    }

    /// Whether a bulk group wait of a warp needs a copy.
    pub(crate) fn bulk_wait_needs(
        &self,
        copy: &Copy,
        warp: u32,
        lane: u32,
        pending: u32,
        read: bool,
    ) -> bool {
        // `wait_group.read` does not wait for a copy whose source is read.
        let is_incomplete = !read || copy.unread_pieces().next().is_some();
        is_incomplete
            && copy.warp == warp
            && copy
                .group
                .is_some_and(|g| self.groups[warp as usize].wait_needs(g, lane, pending, read))
    }
}
