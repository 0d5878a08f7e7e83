//! Asynchronous engines: copies and wgmmas between issue and completion.
//!
//! A copy goes through its pieces in any order. A copy that completes with a
//! bulk group takes two steps per piece, the read of its source and the write
//! of its destination, since a wait may be for the first alone: the first step
//! runs the job and keeps what it reads, the second runs it again on what was
//! kept. A wgmma is one event of its warpgroup: it can complete when all four
//! warps have issued their part, and events complete in order.

use crate::clock::{ALL_LANES, Clock, Threads};
use crate::cluster::Cluster;
use crate::compile::RoleCode;
use crate::env::Env;
use crate::stats::Counters;
use crate::warp::{Registers, Warp};
use std::collections::VecDeque;
use warpline_ir::job::WgmmaJob;
use warpline_ir::{Done, Engine, Fault, FaultKind, Job, RegId, Span};

/// What is in flight in a cluster.
#[derive(Debug)]
pub(crate) struct Engines {
    /// Copies, oldest first.
    pub(crate) copies: Vec<Copy>,
    /// Bulk groups, by warp of the cluster.
    pub(crate) groups: Vec<Groups>,
    /// wgmmas, by warpgroup of the cluster.
    products: Vec<Products>,
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
    group: Option<u64>,
    /// What the issuer knew.
    pub(crate) clock: Option<Box<Clock>>,
    pieces: Vec<Piece>,
}

/// How far a piece of a copy is.
#[derive(Debug)]
enum Piece {
    /// Nothing is done.
    Issued,
    /// Its source was read.
    Read(VecDeque<Box<[u8]>>),
    /// All is done.
    Done,
}

impl Copy {
    /// Does it read in one step and write in another?
    fn two_steps(&self) -> bool {
        self.group.is_some()
    }

    /// Are all sources read?
    pub(crate) fn is_read(&self) -> bool {
        self.pieces.iter().all(|p| !matches!(p, Piece::Issued))
    }

    fn is_done(&self) -> bool {
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

/// The bulk groups of one warp.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    /// Groups that no wait has covered, oldest first.
    list: Vec<Group>,
    made: u64,
}

#[derive(Debug)]
struct Group {
    number: u64,
    lane: u32,
    /// Closed by a commit?
    closed: bool,
    /// Copies whose source is not read.
    unread: u32,
    /// Copies that are not done.
    undone: u32,
    /// The last of its copies, in the warp's count, plus 1.
    past: u32,
}

impl Groups {
    /// The group that a lane's copies go to, with one copy more.
    fn add(&mut self, lane: u32, copy: u32) -> u64 {
        let open = self.list.iter_mut().find(|g| g.lane == lane && !g.closed);
        let g = match open {
            Some(g) => g,
            None => {
                self.made += 1;
                self.list.push(Group {
                    number: self.made,
                    lane,
                    closed: false,
                    unread: 0,
                    undone: 0,
                    past: 0,
                });
                let last = self.list.len() - 1;
                &mut self.list[last]
            }
        };
        g.unread += 1;
        g.undone += 1;
        g.past = copy + 1;
        g.number
    }

    /// A lane closes its group, which may be empty.
    pub(crate) fn commit(&mut self, lane: u32) {
        if let Some(g) = self.list.iter_mut().find(|g| g.lane == lane && !g.closed) {
            g.closed = true;
        } else {
            self.made += 1;
            self.list.push(Group {
                number: self.made,
                lane,
                closed: true,
                unread: 0,
                undone: 0,
                past: 0,
            });
        }
    }

    /// The groups that a wait is for: all closed ones of the lane but the youngest.
    fn covered(&self, lane: u32, pending: u32) -> impl Iterator<Item = &Group> {
        let of_lane = move |g: &&Group| g.lane == lane && g.closed;
        let n = self.list.iter().filter(of_lane).count();
        let take = n.saturating_sub(pending as usize);
        self.list.iter().filter(of_lane).take(take)
    }

    /// Does a wait pass?
    pub(crate) fn passed(&self, lane: u32, pending: u32, read: bool) -> bool {
        self.covered(lane, pending)
            .all(|g| if read { g.unread == 0 } else { g.undone == 0 })
    }

    /// The number past the last copy that a wait covers.
    pub(crate) fn past(&self, lane: u32, pending: u32) -> u32 {
        self.covered(lane, pending).map(|g| g.past).max().unwrap_or(0)
    }

    /// Does a wait need a group?
    fn waits_for(&self, group: u64, lane: u32, pending: u32, read: bool) -> bool {
        self.covered(lane, pending)
            .any(|g| g.number == group && if read { g.unread > 0 } else { g.undone > 0 })
    }

    /// Forgets the groups that a wait covered and that are done.
    pub(crate) fn forget(&mut self, lane: u32, pending: u32) {
        let last = self.covered(lane, pending).map(|g| g.number).max();
        self.list
            .retain(|g| g.lane != lane || Some(g.number) > last || g.undone > 0);
    }

    fn get(&mut self, number: u64) -> Option<&mut Group> {
        self.list.iter_mut().find(|g| g.number == number)
    }
}

/// The wgmmas of one warpgroup.
#[derive(Debug, Default)]
pub(crate) struct Products {
    /// wgmmas that are complete.
    pub(crate) done: u32,
    queue: VecDeque<Product>,
}

#[derive(Debug)]
struct Product {
    number: u64,
    site: u32,
    parts: [Option<WgmmaJob>; 4],
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
        &self.products[self.warpgroup(w)]
    }

    /// Takes a copy.
    pub(crate) fn add_copy(&mut self, job: Job, warp: &mut Warp, site: u32, clock: Option<Box<Clock>>) {
        self.issued += 1;
        let group = match job.done() {
            Done::BulkGroup { lane } => {
                warp.copies += 1;
                Some(self.groups[warp.id as usize].add(lane, warp.copies - 1))
            }
            _ => None,
        };
        let pieces = (0..job.pieces()).map(|_| Piece::Issued).collect();
        self.copies.push(Copy {
            number: self.issued,
            job,
            warp: warp.id,
            site,
            group,
            clock,
            pieces,
        });
    }

    /// Takes one warp's part of its `index`th wgmma; gives the op of another warp's part, if it differs.
    pub(crate) fn add_product(&mut self, job: WgmmaJob, index: u32, warp: &Warp, site: u32) -> Option<u32> {
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

    /// Is nothing in flight that could complete?
    pub(crate) fn idle(&self) -> bool {
        self.copies.is_empty() && self.ready_products().next().is_none()
    }

    /// Does a wait on a warp's bulk groups need a copy?
    pub(crate) fn bulk_needs(&self, copy: &Copy, warp: u32, lane: u32, pending: u32, read: bool) -> bool {
        copy.warp == warp
            && copy.group.is_some_and(|g| {
                self.groups[warp as usize].waits_for(g, lane, pending, read)
            })
    }
}

/// A fault of work in flight, and the warp and op that issued it.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) fault: Fault,
    pub(crate) warp: u32,
    pub(crate) site: u32,
}

/// Takes one step of one piece of a copy.
pub(crate) fn step_copy(
    env: &Env<'_>,
    cluster: &mut Cluster,
    copy: usize,
    piece: usize,
    counters: &mut Counters,
) -> Result<(), Failed> {
    let mut c = cluster.engines.copies.remove(copy);
    let was_read = c.is_read();
    let failed = |fault, c: &Copy| Failed {
        fault,
        warp: c.warp,
        site: c.site,
    };
    let before = std::mem::replace(&mut c.pieces[piece], Piece::Done);
    let mut port = Port {
        env,
        cluster,
        registers: None,
        mode: Mode::Direct,
        arrival: match c.job.done() {
            Done::Bytes(bar) => Some((bar, c.warp, c.site)),
            _ => None,
        },
    };
    match before {
        Piece::Issued if c.two_steps() => {
            let mut kept = VecDeque::new();
            port.mode = Mode::Keep(&mut kept);
            c.job
                .complete(piece as u32, &mut port)
                .map_err(|f| failed(f, &c))?;
            c.pieces[piece] = Piece::Read(kept);
        }
        Piece::Issued | Piece::Read(_) => {
            let mut kept = VecDeque::new();
            if let Piece::Read(k) = before {
                kept = k;
                port.mode = Mode::Replay(&mut kept);
            }
            let bytes = c
                .job
                .complete(piece as u32, &mut port)
                .map_err(|f| failed(f, &c))?;
            match c.job.done() {
                Done::Bytes(bar) => {
                    counters.bytes.bulk_load += u64::from(bytes);
                    let b = &mut cluster.ctas[bar.cta as usize].bars[bar.slot as usize];
                    if let (Some(p), Some(clock)) = (&mut b.passing, &c.clock) {
                        p.came.join(clock);
                    }
                    b.check_live()
                        .and_then(|()| b.receive(bytes))
                        .map_err(|f| failed(f, &c))?;
                }
                _ => counters.bytes.bulk_store += u64::from(bytes),
            }
        }
        Piece::Done => {}
    }
    finish_copy(cluster, copy, c, was_read);
    Ok(())
}

/// Gives up what a copy no longer needs, and keeps it if anything is left to do.
fn finish_copy(cluster: &mut Cluster, at: usize, c: Copy, was_read: bool) {
    let (read, done) = (c.is_read() && !was_read, c.is_done());
    if read {
        c.job.reads(&mut |s| cluster.unclaim(s, false));
    }
    if done {
        c.job.writes(&mut |s| cluster.unclaim(s, true));
    }
    if let Some(number) = c.group {
        let groups = &mut cluster.engines.groups[c.warp as usize];
        if let Some(g) = groups.get(number) {
            g.unread -= u32::from(read);
            g.undone -= u32::from(done);
        }
    }
    if !done {
        cluster.engines.copies.insert(at, c);
    }
    cluster.stir();
}

/// Completes the oldest wgmma of a warpgroup, which all four warps have issued.
pub(crate) fn step_product(
    env: &Env<'_>,
    cluster: &mut Cluster,
    warps: &mut [Warp],
    group: usize,
    counters: &mut Counters,
) -> Result<(), Failed> {
    let groups_per_cta = cluster.threads.warps.div_ceil(4) as usize;
    let first = group / groups_per_cta * cluster.threads.warps as usize + group % groups_per_cta * 4;
    let products = &mut cluster.engines.products[group];
    let Some(p) = products.queue.pop_front() else {
        return Ok(());
    };
    products.done += 1;
    for (i, job) in p.parts.into_iter().enumerate() {
        let (Some(job), Some(warp)) = (job, warps.get_mut(first + i)) else {
            continue;
        };
        counters.wgmma_flops += job.flops();
        job.reads(&mut |s| cluster.unclaim(s, false));
        let mut port = Port {
            env,
            cluster,
            registers: Some((&mut warp.regs, &env.code.roles[warp.role])),
            mode: Mode::Direct,
            arrival: None,
        };
        job.complete(&mut port).map_err(|fault| Failed {
            fault,
            warp: warp.id,
            site: p.site,
        })?;
    }
    cluster.stir();
    Ok(())
}

/// Whether a job's reads and writes happen, and when.
enum Mode<'a> {
    /// Now.
    Direct,
    /// Reads happen and are kept; writes do not happen.
    Keep(&'a mut VecDeque<Box<[u8]>>),
    /// Reads give what was kept; writes happen.
    Replay(&'a mut VecDeque<Box<[u8]>>),
}

/// Memory and registers as a job sees them.
struct Port<'a, 'k> {
    env: &'a Env<'k>,
    cluster: &'a mut Cluster,
    registers: Option<(&'a mut Registers, &'a RoleCode<'k>)>,
    mode: Mode<'a>,
    /// The barrier that what is written arrives on; the issuing warp and op.
    arrival: Option<(warpline_ir::BarAt, u32, u32)>,
}

impl Port<'_, '_> {
    fn read_now(&self, span: Span, out: &mut [u8]) -> Result<(), Fault> {
        match span {
            Span::Global(addr, _) => self.env.memory.load(addr, out),
            Span::Shared(at, _) => {
                let shared = &self.cluster.ctas[at.cta as usize].shared;
                let bytes = shared.get(at.byte, out.len()).map_err(|gap| {
                    Fault::new(
                        FaultKind::NeverWritten,
                        format!("reads {}, which was never written", self.env.byte_name(gap)),
                    )
                })?;
                out.copy_from_slice(bytes);
                Ok(())
            }
        }
    }
}

impl Engine for Port<'_, '_> {
    fn read(&mut self, span: Span, out: &mut [u8]) -> Result<(), Fault> {
        match &mut self.mode {
            Mode::Replay(kept) => {
                if let Some(k) = kept.pop_front() {
                    out.copy_from_slice(&k);
                }
                Ok(())
            }
            Mode::Direct => self.read_now(span, out),
            Mode::Keep(_) => {
                self.read_now(span, out)?;
                if let Mode::Keep(kept) = &mut self.mode {
                    kept.push_back((&*out).into());
                }
                Ok(())
            }
        }
    }

    fn write(&mut self, span: Span, data: &[u8]) -> Result<(), Fault> {
        if matches!(self.mode, Mode::Keep(_)) {
            return Ok(());
        }
        match span {
            Span::Global(addr, _) => self.env.memory.write(addr, data),
            Span::Shared(at, _) => {
                let cta = &mut self.cluster.ctas[at.cta as usize];
                cta.shared.put(at.byte, data);
                if let (Some(shadow), Some((bar, warp, site))) =
                    (&mut self.cluster.shadow, self.arrival)
                {
                    let phase = self.cluster.ctas[bar.cta as usize].bars[bar.slot as usize].phase;
                    let thread = self.cluster.threads.barrier(bar.cta, bar.slot);
                    let record = shadow.engine(thread, phase, site, warp);
                    let range = at.byte..at.byte + data.len() as u32;
                    shadow.wrote(record, ALL_LANES, at.cta, &range);
                }
                Ok(())
            }
        }
    }

    fn reduce(
        &mut self,
        span: Span,
        data: &[u8],
        size: usize,
        f: &dyn Fn(&[u8], &[u8], &mut [u8]),
    ) -> Result<(), Fault> {
        if matches!(self.mode, Mode::Keep(_)) {
            return Ok(());
        }
        let mut old = vec![0; data.len()];
        self.read_now(span, &mut old)?;
        let mut new = vec![0; data.len()];
        let pairs = old.chunks_exact(size).zip(data.chunks_exact(size));
        for ((old, data), new) in pairs.zip(new.chunks_exact_mut(size)) {
            f(old, data, new);
        }
        self.write(span, &new)
    }

    fn register(&mut self, r: RegId) -> [u32; 32] {
        self.registers
            .as_ref()
            .map_or([0; 32], |(regs, code)| *regs.get(code.slot(r)))
    }

    fn set_register(&mut self, r: RegId, v: &[u32; 32]) {
        if let Some((regs, code)) = &mut self.registers {
            *regs.get_mut(code.slot(r)) = *v;
        }
    }
}
