//! Asynchronous engines: copies and wgmmas between issue and completion.
//!
//! A copy goes through its pieces in any order. A copy that completes with a
//! bulk group takes two steps per piece, the read of its source and the write
//! of its destination, since a wait may be for the first alone. A wgmma is one event of its warpgroup: it can complete when all four
//! warps have issued their part, and events complete in order.

use crate::clock::{Clock, Threads};
use crate::groups::Groups;
use crate::lane_copies::LaneCopies;
use crate::warp::Warp;
use std::collections::VecDeque;
use warpline_ir::job::WgmmaJob;
use warpline_ir::{BarAt, Done, Job, SharedAt, Span};

/// What is in flight in a cluster.
#[derive(Debug)]
pub(crate) struct Engines {
    /// Copies, oldest first.
    pub(crate) copies: Vec<Copy>,
    /// Bulk groups, by warp of the cluster.
    pub(crate) groups: Vec<Groups>,
    /// What lanes copy by themselves, by warp of the cluster.
    pub(crate) lane_copies: Vec<LaneCopies>,
    /// wgmmas, by warpgroup of the cluster.
    pub(crate) products: Vec<Products>,
    warps: u32,
    /// Numbers all work in order of issue.
    issued: u64,
}

/// A copy in flight.
#[derive(Debug)]
pub(crate) struct Copy {
    /// Its number in order of issue.
    pub(crate) number: u64,
    pub(crate) job: Job,
    /// The warp that issued it, counted through the cluster.
    pub(crate) warp: u32,
    /// The op that issued it.
    pub(crate) site: u32,
    /// The bulk group it belongs to.
    pub(crate) group: Option<u64>,
    /// Its number among the copies by lanes of its warp, if it is one.
    pub(crate) stream: Option<u32>,
    /// What the issuer knew.
    pub(crate) clock: Option<Box<Clock>>,
    pub(crate) pieces: Vec<Piece>,
}

/// How far a piece of a copy is.
#[derive(Debug)]
pub(crate) enum Piece {
    /// Nothing is done.
    Issued,
    /// Its source was read.
    Read(VecDeque<Box<[u8]>>),
    /// All is done.
    Done,
}

impl Copy {
    /// Does it read in one step and write in another?
    pub(crate) fn two_steps(&self) -> bool {
        self.group.is_some()
    }

    /// Is it one of a lane's own copies below a number?
    pub(crate) fn is_of_lane(&self, lane: u32, past: u32) -> bool {
        let Done::CopyGroup { lanes } = self.job.done() else {
            return false;
        };
        lanes >> lane & 1 == 1 && self.stream.is_some_and(|n| n < past)
    }

    /// Are all sources read?
    pub(crate) fn is_read(&self) -> bool {
        self.pieces.iter().all(|p| !matches!(p, Piece::Issued))
    }

    pub(crate) fn is_done(&self) -> bool {
        self.pieces.iter().all(|p| matches!(p, Piece::Done))
    }

    /// The pieces with something left to do.
    pub(crate) fn open_pieces(&self) -> impl Iterator<Item = usize> {
        let open = |(i, p): (usize, &Piece)| (!matches!(p, Piece::Done)).then_some(i);
        self.pieces.iter().enumerate().filter_map(open)
    }

    /// The pieces whose source is not read.
    pub(crate) fn unread_pieces(&self) -> impl Iterator<Item = usize> {
        let open = |(i, p): (usize, &Piece)| matches!(p, Piece::Issued).then_some(i);
        self.pieces.iter().enumerate().filter_map(open)
    }
}

/// The wgmmas of one warpgroup.
#[derive(Debug, Default)]
pub(crate) struct Products {
    /// wgmmas that are complete.
    pub(crate) done: u32,
    pub(crate) queue: VecDeque<Product>,
}

#[derive(Debug)]
pub(crate) struct Product {
    number: u64,
    pub(crate) site: u32,
    pub(crate) parts: [Option<WgmmaJob>; 4],
}

impl Products {
    /// The issue number of the oldest wgmma, if all four warps have issued it.
    pub(crate) fn ready(&self) -> Option<u64> {
        let p = self.queue.front()?;
        p.parts.iter().all(Option::is_some).then_some(p.number)
    }

    /// The warps that have issued the oldest wgmma.
    pub(crate) fn issued(&self) -> u32 {
        self.queue
            .front()
            .map_or(0, |p| p.parts.iter().flatten().count() as u32)
    }
}

impl Engines {
    /// Nothing is in flight.
    pub(crate) fn new(t: &Threads) -> Self {
        let groups = t.ctas * t.warps.div_ceil(4);
        Self {
            copies: Vec::new(),
            groups: (0..t.all_warps()).map(|_| Groups::default()).collect(),
            lane_copies: (0..t.all_warps()).map(|_| LaneCopies::default()).collect(),
            products: (0..groups).map(|_| Products::default()).collect(),
            warps: t.warps,
            issued: 0,
        }
    }

    fn warpgroup(&self, w: &Warp) -> usize {
        (w.cta * self.warps.div_ceil(4) + w.index / 4) as usize
    }

    /// The wgmmas of a warp's warpgroup.
    pub(crate) fn products_of(&self, w: &Warp) -> &Products {
        self.products_of_warp(w).1
    }

    /// A warp's warpgroup, counted through the cluster, and its wgmmas.
    pub(crate) fn products_of_warp(&self, w: &Warp) -> (usize, &Products) {
        let group = self.warpgroup(w);
        (group, &self.products[group])
    }

    /// Takes a copy.
    pub(crate) fn add_copy(
        &mut self,
        job: Job,
        warp: &mut Warp,
        site: u32,
        clock: Option<Box<Clock>>,
    ) {
        self.issued += 1;
        let group = match job.done() {
            Done::BulkGroup { lane } => {
                warp.copies += 1;
                Some(self.groups[warp.id as usize].add(lane, warp.copies - 1))
            }
            _ => None,
        };
        let stream = match job.done() {
            Done::CopyGroup { lanes } => Some(self.lane_copies[warp.id as usize].issue(lanes)),
            _ => None,
        };
        let pieces = (0..job.pieces()).map(|_| Piece::Issued).collect();
        self.copies.push(Copy {
            number: self.issued,
            job,
            warp: warp.id,
            site,
            group,
            stream,
            clock,
            pieces,
        });
    }

    /// Takes one warp's part of its `index`th wgmma; gives the op of another warp's part, if it differs.
    pub(crate) fn add_product(
        &mut self,
        job: WgmmaJob,
        index: u32,
        warp: &Warp,
        site: u32,
    ) -> Option<u32> {
        self.issued += 1;
        let number = self.issued;
        let group = self.warpgroup(warp);
        let p = &mut self.products[group];
        let at = (index - p.done) as usize;
        if at == p.queue.len() {
            p.queue.push_back(Product {
                number,
                site,
                parts: [const { None }; 4],
            });
        }
        let product = &mut p.queue[at];
        product.parts[(warp.index % 4) as usize] = Some(job);
        (product.site != site).then_some(product.site)
    }

    /// The warpgroups whose oldest wgmma can complete, with its number.
    pub(crate) fn ready_products(&self) -> impl Iterator<Item = (usize, u64)> {
        let ready = |(i, p): (usize, &Products)| p.ready().map(|n| (i, n));
        self.products.iter().enumerate().filter_map(ready)
    }

    /// The warp and the op that issued work on the shared memory of a CTA.
    pub(crate) fn on(&self, cta: u32) -> Option<(u32, u32)> {
        self.find(true, |s| matches!(s, Span::Shared(at, _) if at.cta == cta))
    }

    /// The warp and the op that issued work over a byte, which an access conflicts with.
    pub(crate) fn over(&self, at: SharedAt, write: bool) -> Option<(u32, u32)> {
        self.find(write, |s| match s {
            Span::Shared(from, len) => {
                from.cta == at.cta && (from.byte..from.byte + len).contains(&at.byte)
            }
            Span::Global(..) => false,
        })
    }

    /// The warp and the op of the first work with a span to write, or with one to read.
    fn find(&self, reads: bool, is: impl Fn(Span) -> bool) -> Option<(u32, u32)> {
        for c in &self.copies {
            let mut hit = false;
            c.job.writes(&mut |s| hit |= is(s));
            if reads && !c.is_read() {
                c.job.reads(&mut |s| hit |= is(s));
            }
            if hit {
                return Some((c.warp, c.site));
            }
        }
        for (group, p) in self.products.iter().enumerate().filter(|_| reads) {
            for product in &p.queue {
                for (i, job) in product.parts.iter().enumerate() {
                    let mut hit = false;
                    job.iter().for_each(|j| j.reads(&mut |s| hit |= is(s)));
                    if hit {
                        return Some((self.first_warp(group) + i as u32, product.site));
                    }
                }
            }
        }
        None
    }

    /// The first warp of a warpgroup, counted through the cluster.
    pub(crate) fn first_warp(&self, group: usize) -> u32 {
        let per_cta = self.warps.div_ceil(4);
        let group = group as u32;
        group / per_cta * self.warps + group % per_cta * 4
    }

    /// Does an arrival on a barrier wait for a copy by lanes?
    pub(crate) fn arrives(&self, copy: &Copy, bar: BarAt) -> bool {
        let copies = &self.lane_copies[copy.warp as usize];
        copy.stream.is_some_and(|n| copies.arrives(bar, n))
    }

    /// Does a wait on a warp's bulk groups need a copy?
    pub(crate) fn bulk_needs(
        &self,
        copy: &Copy,
        warp: u32,
        lane: u32,
        pending: u32,
        read: bool,
    ) -> bool {
        // Of several copies in a group, one that is read already is not what a read waits for.
        let left = !read || copy.unread_pieces().next().is_some();
        left && copy.warp == warp
            && copy
                .group
                .is_some_and(|g| self.groups[warp as usize].waits_for(g, lane, pending, read))
    }
}
