//! The scheduler: which warp runs next, and which piece of work completes.
//!
//! One scheduler runs the warps of some clusters on one host thread, and is a
//! function of the kernel, the launch and the seed. In `eager` and `late` the
//! warps take turns, each until it must stop. In `eager` work completes at
//! issue. In `late` a warp that would reach into another CTA lets all others
//! go first, so that a CTA that may leave has left by then; and work completes
//! when no warp can go on: the oldest work that a waiting warp needs, as far as
//! that warp needs it, and then the warps are asked again. In `random` each turn is a seeded choice between the warps
//! that can run, for one op that others can see, and the work in flight, for
//! one step of one piece.

use crate::cluster::Cluster;
use crate::complete::{Failed, step_copy, step_product};
use crate::engine::Copy;
use crate::env::Env;
use crate::error::RunError;
use crate::global::Global;
use crate::machine::Lockstep;
use crate::options::Timing;
use crate::report;
use crate::rng::Rng;
use crate::spin::Spins;
use crate::stats::Counters;
use crate::step::{Stop, Turn};
use crate::warp::{Status, Waiting, Warp};
use std::collections::VecDeque;
use std::ops::Range;
use warpline_ir::{BarAt, Done, Fault, FaultKind};

/// Ops that others can see in one turn of a warp, where warps take turns.
const TURN: u32 = 1024;

/// Polls in a row after which nothing is expected to change any more.
const PATIENCE: u64 = 1 << 18;

/// The most ops that a warp runs without a wait.
const ENDLESS: u64 = 1 << 30;

/// The most steps of a run that has no limit of its own.
const MAX_STEPS: u64 = 1 << 36;

/// A cluster on the machine, with its warps.
#[derive(Debug)]
pub(crate) struct Resident {
    pub(crate) cluster: Cluster,
    pub(crate) warps: Vec<Warp>,
    /// Work that could take a step.
    work: usize,
}

/// A warp that can run: the place of its cluster, and its number in it.
type Key = (usize, usize);

/// Runs clusters on one host thread.
pub(crate) struct Scheduler<'e, 'k> {
    env: &'e Env<'k>,
    /// Clusters on the machine.
    resident: Vec<Option<Resident>>,
    /// Who touched global memory, where races are looked for.
    global: Option<Global>,
    /// Clusters that wait for room.
    waiting: Range<u64>,
    ready: VecDeque<Key>,
    /// `late`: warps whose next op reaches into another CTA.
    remote: VecDeque<Key>,
    rng: Rng,
    /// How much likelier a warp runs than a piece of work, in `random`.
    odds: (usize, usize),
    max_steps: u64,
    steps: u64,
    /// Polls in a row without progress.
    idle: u64,
    /// `idle` when something else was last made to move.
    pushed: u64,
    /// Warps that run although nothing changes.
    spins: Spins<Key>,
    counters: &'e mut Counters,
    /// Told of each CTA that is done.
    done: &'e dyn Fn(),
}

type Result<T> = std::result::Result<T, Box<RunError>>;

/// Something an engine could do next.
#[derive(Clone, Copy, Debug)]
enum Work {
    /// Steps of a copy; only the reads of its source?
    Copy { at: usize, read: bool },
    /// The oldest wgmma of a warpgroup.
    Product { group: usize },
}

impl<'e, 'k> Scheduler<'e, 'k> {
    /// A scheduler for some clusters of the grid, of which `room` fit the machine at once.
    pub(crate) fn new(
        env: &'e Env<'k>,
        clusters: Range<u64>,
        room: u64,
        mut rng: Rng,
        max_steps: Option<u64>,
        counters: &'e mut Counters,
        done: &'e dyn Fn(),
    ) -> Self {
        let room = room.clamp(1, (clusters.end - clusters.start).max(1));
        let odds = [(1, 1), (4, 1), (32, 1), (1, 4)][rng.below(4)];
        Self {
            env,
            resident: (0..room).map(|_| None).collect(),
            global: (env.races && !env.memory.is_open()).then(|| Global::new(env.threads.warps)),
            waiting: clusters,
            ready: VecDeque::new(),
            remote: VecDeque::new(),
            rng,
            odds,
            max_steps: max_steps.unwrap_or(MAX_STEPS),
            steps: 0,
            idle: 0,
            pushed: 0,
            spins: Spins::new(),
            counters,
            done,
        }
    }

    /// Runs all clusters to their end; gives who touched global memory.
    pub(crate) fn run(mut self) -> Result<Option<Global>> {
        for at in 0..self.resident.len() {
            self.start(at);
        }
        loop {
            if self.steps > self.max_steps {
                let text = format!("the run took more than {} steps", self.max_steps);
                let mut cut = self.stuck(text);
                cut.kind = FaultKind::Limit;
                return Err(cut);
            }
            let busy = match self.env.timing {
                Timing::Random => self.random_turn()?,
                Timing::Eager | Timing::Late => self.turn()?,
            };
            if busy {
                continue;
            }
            if self.resident.iter().all(Option::is_none) {
                return Ok(self.global);
            }
            let why = match self.waiting.clone().count() {
                0 => "nothing can go on".to_owned(),
                n => format!("nothing can go on, and {n} clusters wait for room on the machine"),
            };
            return Err(self.stuck(why));
        }
    }

    /// Puts the next cluster on the machine.
    fn start(&mut self, at: usize) {
        self.resident[at] = self.waiting.next().map(|index| {
            let (cluster, mut warps) = Cluster::new(self.env, index);
            for w in &mut warps {
                w.queued = true;
            }
            self.ready.extend((0..warps.len()).map(|w| (at, w)));
            Resident {
                cluster,
                warps,
                work: 0,
            }
        });
    }

    /// A turn of the next warp, or of the work that one needs.
    fn turn(&mut self) -> Result<bool> {
        let eager = self.env.timing == Timing::Eager;
        let turn = Turn {
            visible: TURN,
            each_job: eager,
            remote: eager,
            all_remote: eager,
        };
        let remote = Turn {
            remote: true,
            ..turn
        };
        // After a round in which all that ran only polled, something else must move.
        if self.idle > self.pushed + 2 * self.ready.len() as u64 {
            self.pushed = self.idle;
            if let Some(key) = self.remote.pop_front() {
                return self.run_warp(key, remote);
            }
            if self.complete_oldest()? {
                (self.idle, self.pushed) = (0, 0);
                return Ok(true);
            }
        }
        if let Some(key) = self.ready.pop_front() {
            return self.run_warp(key, turn);
        }
        if let Some(key) = self.remote.pop_front() {
            return self.run_warp(key, remote);
        }
        self.complete_needed()
    }

    /// A turn of whatever the seed says.
    fn random_turn(&mut self) -> Result<bool> {
        let warps = self.ready.len() * self.odds.0;
        let work: usize = self.resident.iter().flatten().map(|r| r.work).sum();
        if warps + work == 0 {
            return Ok(false);
        }
        let pick = self.rng.below(warps + work * self.odds.1);
        if pick < warps {
            let i = pick / self.odds.0;
            let Some(key) = self.ready.swap_remove_back(i) else {
                return Ok(false);
            };
            let turn = Turn {
                visible: 1,
                each_job: false,
                remote: true,
                all_remote: true,
            };
            return self.run_warp(key, turn);
        }
        let mut i = (pick - warps) / self.odds.1;
        let found = self.resident.iter().position(|r| {
            let n = r.as_ref().map_or(0, |r| r.work);
            let here = i < n;
            i -= if here { 0 } else { n };
            here
        });
        let Some(at) = found else { return Ok(false) };
        self.random_step(at, i)?;
        Ok(true)
    }

    /// One step of the `i`th work of a cluster.
    fn random_step(&mut self, at: usize, i: usize) -> Result<()> {
        let Some(r) = &mut self.resident[at] else {
            return Ok(());
        };
        let copies = r.cluster.engines.copies.len();
        let stepped = if i < copies {
            let open: Vec<_> = r.cluster.engines.copies[i].open_pieces().collect();
            let piece = open[self.rng.below(open.len())];
            step_copy(self.env, &mut r.cluster, i, piece, self.counters)
        } else {
            let ready = r.cluster.engines.ready_products().nth(i - copies);
            let (group, _) = ready.unwrap_or_default();
            step_product(self.env, &mut r.cluster, &mut r.warps, group, self.counters)
        };
        self.idle = 0;
        self.checked(at, stepped)?;
        self.settle(at)
    }

    /// Runs a warp, and puts it where it belongs then.
    fn run_warp(&mut self, (at, w): Key, turn: Turn) -> Result<bool> {
        let Some(r) = &mut self.resident[at] else {
            return Ok(true);
        };
        let before = r.cluster.progress;
        let warp = &mut r.warps[w];
        let mut m = Lockstep {
            env: self.env,
            code: &self.env.code.roles[warp.role],
            warp,
            cluster: &mut r.cluster,
            global: &mut self.global,
            counters: self.counters,
            site: 0,
            now: self.steps,
            waiting: None,
            polled: false,
            submitted: false,
            deferred: None,
            lane: None,
            other: None,
            branch: None,
        };
        let stop = m.run(turn);
        self.steps = m.now;
        let submitted = m.submitted;
        let stop = match stop {
            Ok(stop) => stop,
            Err(fault) => {
                let (site, lane, other, branch) = (m.site, m.lane, m.other, m.branch);
                let mut e = report::fault(self.env, r, w, site, fault, lane, other);
                if let Some(branch) = branch {
                    let (cluster, warp) = (r.cluster.index, r.warps[w].id);
                    e.at = Some(self.env.branch(cluster, warp, branch));
                }
                return Err(e);
            }
        };
        if stop == Stop::Exited {
            let (cluster, warp) = (&mut r.cluster, &mut r.warps[w]);
            cluster.leave(warp);
            self.left_with_work(at, w)?;
        }
        let progress = self.resident[at]
            .as_ref()
            .is_none_or(|r| r.cluster.progress != before);
        match stop {
            Stop::Polled if !progress => self.idle += 1,
            _ => (self.idle, self.pushed) = (0, 0),
        }
        let queue = match stop {
            Stop::Yield | Stop::Polled => Some(&mut self.ready),
            Stop::Remote => Some(&mut self.remote),
            Stop::Blocked | Stop::Exited => None,
        };
        if let Some(r) = &mut self.resident[at] {
            r.warps[w].queued = queue.is_some();
        }
        if let Some(queue) = queue {
            queue.push_back((at, w));
        }
        if self.env.timing == Timing::Eager && submitted {
            self.complete_all(at)?;
        }
        self.settle(at)?;
        self.check_loops((at, w), progress)?;
        if self.idle < PATIENCE {
            return Ok(true);
        }
        // Warps that only poll, with no work in flight, will poll for ever.
        Err(self.stuck("nothing changes any more".into()))
    }

    /// Refuses loops that never end: all warps that can run repeat themselves,
    /// or one runs for ever without a wait.
    fn check_loops(&mut self, key: Key, progress: bool) -> Result<()> {
        if progress {
            self.spins.change(self.steps);
        }
        let Some(r) = &mut self.resident[key.0] else {
            return Ok(());
        };
        let warp = &mut r.warps[key.1];
        if warp.status != Status::Ready {
            warp.waited = warp.ran.ops;
        }
        if warp.ran.ops - warp.waited > ENDLESS {
            let why =
                format!("a warp has run {ENDLESS} ops without a wait, in a loop without an end");
            return Err(self.stuck(why));
        }
        if progress || !self.spins.turn(key, warp, self.steps) {
            return Ok(());
        }
        let all = self.ready.iter().chain(&self.remote);
        if !all.clone().all(|key| self.spins.repeats(key)) {
            return Ok(());
        }
        // What is in flight may change what they read.
        if self.complete_oldest()? {
            self.spins.change(self.steps);
            return Ok(());
        }
        let why = "loops without an end repeat themselves, and nothing else can go on";
        Err(self.stuck(why.into()))
    }

    /// Wakes the warps that can go on, and ends the cluster if all have left.
    fn settle(&mut self, at: usize) -> Result<()> {
        let Some(r) = &mut self.resident[at] else {
            return Ok(());
        };
        if std::mem::take(&mut r.cluster.stirred) {
            for i in 0..r.warps.len() {
                let w = &r.warps[i];
                if let (false, Status::Waiting(on)) = (w.queued, &w.status)
                    && r.cluster.passes(w, on)
                {
                    r.warps[i].queued = true;
                    self.ready.push_back((at, i));
                }
            }
        }
        let engines = &r.cluster.engines;
        r.work = engines.copies.len() + engines.ready_products().count();
        if r.cluster.over() {
            self.complete_all(at)?;
            for _ in 0..self.env.threads.ctas {
                self.counters.ctas += 1;
                (self.done)();
            }
            self.start(at);
        }
        Ok(())
    }

    /// A CTA that may exit exits at once: nothing may be at work on its shared memory then.
    fn left_with_work(&mut self, at: usize, w: usize) -> Result<()> {
        let Some(r) = &self.resident[at] else {
            return Ok(());
        };
        let cta = r.warps[w].cta;
        let c = &r.cluster.ctas[cta as usize];
        if !self.env.races || c.live > 0 {
            return Ok(());
        }
        let at_work = if c.shared.busy() {
            r.cluster.engines.on(cta)
        } else {
            None
        };
        // Others that reached into it must be known to one of its threads, which has left after that.
        let left = c.left.as_ref();
        let reached = left.and_then(|left| c.reached.unknown(|m| left.knows(m)));
        let (warp, site, text) = match (at_work, reached) {
            (Some((warp, site)), _) => (
                warp,
                site,
                format!(
                    "is still at work on the shared memory of the CTA of rank {cta}, which has left"
                ),
            ),
            (None, Some(last)) => (
                last.warp,
                last.site,
                format!(
                    "reaches into the CTA of rank {cta}, which may have left by then: nothing orders its exit after this"
                ),
            ),
            (None, None) => return self.left_in_phase(r, w),
        };
        let fault = Fault::new(FaultKind::PeerExited, text);
        Err(report::fault(
            self.env,
            r,
            warp as usize,
            site,
            fault,
            None,
            None,
        ))
    }

    /// The CTA of a warp has left: are phases of its mbarriers begun and not complete?
    fn left_in_phase(&self, r: &Resident, w: usize) -> Result<()> {
        if !self.env.whole_phases {
            return Ok(());
        }
        let cta = r.warps[w].cta;
        let bars = r.cluster.ctas[cta as usize].bars.iter().zip(0..);
        let begun = { bars }.find_map(|(b, slot)| Some((b, b.in_phase()?, slot)));
        let Some((b, count, slot)) = begun else {
            return Ok(());
        };
        let (name, index) = self.env.barrier_name(BarAt { cta, slot });
        let (arrivals, bytes) = (b.arrivals, b.bytes);
        let text = format!(
            "the CTA ends in the middle of a phase of {name}[{index}], which lacks {arrivals} of {count} arrivals and {bytes} bytes"
        );
        Err(Box::new(RunError {
            kind: FaultKind::Barrier,
            text,
            at: None,
            lane: None,
            other: None,
            waits: Vec::new(),
        }))
    }

    fn checked(&self, at: usize, stepped: std::result::Result<(), Failed>) -> Result<()> {
        match (stepped, &self.resident[at]) {
            (Err(f), Some(r)) => Err(report::fault(
                self.env,
                r,
                f.warp as usize,
                f.site,
                f.fault,
                None,
                None,
            )),
            _ => Ok(()),
        }
    }

    /// Does all that is left of some work, or all reads of its source.
    fn complete(&mut self, at: usize, work: Work) -> Result<()> {
        let Some(r) = &mut self.resident[at] else {
            return Ok(());
        };
        let stepped = match work {
            Work::Product { group } => {
                step_product(self.env, &mut r.cluster, &mut r.warps, group, self.counters)
            }
            Work::Copy { at, read } => loop {
                let c = &r.cluster.engines.copies[at];
                let number = c.number;
                let next = if read {
                    c.unread_pieces().next()
                } else {
                    c.open_pieces().next()
                };
                let Some(piece) = next else { break Ok(()) };
                let stepped = step_copy(self.env, &mut r.cluster, at, piece, self.counters);
                let copies = &r.cluster.engines.copies;
                if stepped.is_err() || copies.get(at).is_none_or(|c| c.number != number) {
                    break stepped;
                }
            },
        };
        self.checked(at, stepped)
    }

    /// Completes everything that can.
    fn complete_all(&mut self, at: usize) -> Result<()> {
        loop {
            let Some(r) = &self.resident[at] else {
                return Ok(());
            };
            let engines = &r.cluster.engines;
            let product = engines.ready_products().next();
            let work = match (engines.copies.is_empty(), product) {
                (false, _) => Work::Copy { at: 0, read: false },
                (true, Some((group, _))) => Work::Product { group },
                (true, None) => return Ok(()),
            };
            self.complete(at, work)?;
        }
    }

    /// `late`: completes the oldest work that a waiting warp needs.
    fn complete_needed(&mut self) -> Result<bool> {
        for at in 0..self.resident.len() {
            let Some(r) = &self.resident[at] else {
                continue;
            };
            let needs = r.warps.iter().filter_map(|w| match &w.status {
                Status::Waiting(on) => needed(&r.cluster, w, on),
                _ => None,
            });
            if let Some((_, work)) = needs.min_by_key(|(number, _)| *number) {
                self.complete(at, work)?;
                self.settle(at)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Completes the oldest work of some cluster: warps that poll may need anything.
    fn complete_oldest(&mut self) -> Result<bool> {
        for at in 0..self.resident.len() {
            let Some(r) = &self.resident[at] else {
                continue;
            };
            let e = &r.cluster.engines;
            let copy = |(at, c): (usize, &Copy)| (c.number, Work::Copy { at, read: false });
            let copies = e.copies.iter().enumerate().map(copy);
            let products = e
                .ready_products()
                .map(|(group, number)| (number, Work::Product { group }));
            if let Some((_, work)) = copies.chain(products).min_by_key(|(number, _)| *number) {
                self.complete(at, work)?;
                self.settle(at)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn stuck(&self, why: String) -> Box<RunError> {
        report::stuck(self.env, self.resident.iter().flatten(), why)
    }
}

/// The oldest work that a waiting warp needs, with its number.
fn needed(cluster: &Cluster, w: &Warp, on: &Waiting) -> Option<(u64, Work)> {
    let e = &cluster.engines;
    let copies = e.copies.iter().enumerate();
    match *on {
        Waiting::Mbarrier { bar, .. } => copies
            .filter(|(_, c)| c.job.done() == Done::Bytes(bar) || e.arrives(c, bar))
            .map(|(at, c)| (c.number, Work::Copy { at, read: false }))
            .next(),
        Waiting::Bulk {
            lane,
            pending,
            read,
        } => copies
            .filter(|(_, c)| e.bulk_needs(c, w.id, lane, pending, read))
            .map(|(at, c)| (c.number, Work::Copy { at, read }))
            .next(),
        Waiting::Copies { lane, past } => copies
            .filter(|(_, c)| c.warp == w.id && c.is_of_lane(lane, past))
            .map(|(at, c)| (c.number, Work::Copy { at, read: false }))
            .next(),
        Waiting::Wgmma { .. } => {
            let (group, products) = e.products_of_warp(w);
            products.ready().map(|n| (n, Work::Product { group }))
        }
        _ => None,
    }
}
