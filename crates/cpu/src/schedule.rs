//! The scheduler: selects the next warp to run and the next asynchronous op to complete.
//!
//! One scheduler runs the warps of some clusters on one host thread. Its choices depend only on the
//! kernel, the launch and the seed. In `eager` and `late` the warps take turns, each until it must
//! stop. In `eager`, asynchronous ops complete at issue. In `late`, a warp runs an access to
//! another CTA only after all other warps have stopped, so a CTA that can exit has exited by then.
//! In `late`, asynchronous ops complete only when no warp can run: the oldest op that a warp waits
//! for, and only the steps that it needs. In `random`, each turn is a seeded choice between one
//! visible op of a ready warp and one step of one piece of an asynchronous op.

use crate::cluster::Cluster;
use crate::complete::{AsyncFault, complete_wgmma, step_copy};
use crate::engine::Copy;
use crate::env::Env;
use crate::error::RunError;
use crate::global_shadow::GlobalShadow;
use crate::livelock::LivelockDetector;
use crate::machine::WarpMachine;
use crate::options::Timing;
use crate::report::{self, LIVELOCK};
use crate::rng::Rng;
use crate::stats::Counters;
use crate::step::{Stop, TurnLimits};
use crate::warp::{Status, Waiting, Warp};
use std::collections::VecDeque;
use std::ops::Range;
use warpline_ir::{Fault, FaultKind, JobCompletion, ResolvedBarrier};

/// The maximum number of visible ops of one turn in `eager` and `late`.
const VISIBLE_OPS_PER_TURN: u32 = 1024;

/// The number of consecutive polls without progress that counts as a livelock.
const POLL_LIMIT: u64 = 1 << 18;

/// The maximum number of ops that a warp runs without a wait.
const MAX_OPS_WITHOUT_WAIT: u64 = 1 << 30;

/// The default step limit of a run.
const MAX_STEPS: u64 = 1 << 36;

/// A resident cluster with its warps.
#[derive(Debug)]
pub(crate) struct ResidentCluster {
    pub(crate) cluster: Cluster,
    pub(crate) warps: Vec<Warp>,
    /// The number of asynchronous ops that can take a step.
    steps_ready: usize,
}

/// A warp: the index of its cluster in `resident`, and its index in the cluster.
type WarpKey = (usize, usize);

/// Runs clusters on one host thread.
pub(crate) struct Scheduler<'e, 'k> {
    env: &'e Env<'k>,
    /// The resident clusters; `None` after the last cluster of an entry.
    resident: Vec<Option<ResidentCluster>>,
    /// The shadow of global memory, if races are checked.
    global: Option<GlobalShadow>,
    /// Clusters that are not resident yet.
    waiting: Range<u64>,
    ready: VecDeque<WarpKey>,
    /// `late`: warps whose next op accesses another CTA.
    remote: VecDeque<WarpKey>,
    rng: Rng,
    /// `random`: the weights of warps and asynchronous ops.
    weights: (usize, usize),
    max_steps: u64,
    steps: u64,
    /// Consecutive polls without progress.
    failed_polls: u64,
    /// `failed_polls` when the scheduler last forced another event.
    forced_at: u64,
    /// The detector of warps that repeat their states.
    livelock: LivelockDetector<WarpKey>,
    counters: &'e mut Counters,
    /// The callback for each completed CTA.
    done: &'e dyn Fn(),
}

type Result<T> = std::result::Result<T, Box<RunError>>;

/// The next step of an engine.
#[derive(Clone, Copy, Debug)]
enum EngineStep {
    /// Steps of a copy; with `read`, only the reads of its source.
    Copy { at: usize, read: bool },
    /// The oldest wgmma of a warpgroup.
    Wgmma { group: usize },
}

impl<'e, 'k> Scheduler<'e, 'k> {
    /// Creates a scheduler for some clusters of the grid; `capacity` of them are resident at once.
    pub(crate) fn new(
        env: &'e Env<'k>,
        clusters: Range<u64>,
        capacity: u64,
        mut rng: Rng,
        max_steps: Option<u64>,
        counters: &'e mut Counters,
        done: &'e dyn Fn(),
    ) -> Self {
        let capacity = capacity.clamp(1, (clusters.end - clusters.start).max(1));
        let weights = [(1, 1), (4, 1), (32, 1), (1, 4)][rng.below(4)];
        Self {
            env,
            resident: (0..capacity).map(|_| None).collect(),
            global: (env.races && !env.memory.is_unbounded())
                .then(|| GlobalShadow::new(env.threads.warps_per_cta)),
            waiting: clusters,
            ready: VecDeque::new(),
            remote: VecDeque::new(),
            rng,
            weights,
            max_steps: max_steps.unwrap_or(MAX_STEPS),
            steps: 0,
            failed_polls: 0,
            forced_at: 0,
            livelock: LivelockDetector::new(),
            counters,
            done,
        }
    }

    /// Runs all clusters; returns the shadow of global memory.
    pub(crate) fn run(mut self) -> Result<Option<GlobalShadow>> {
        for at in 0..self.resident.len() {
            self.start(at);
        }
        loop {
            if self.steps > self.max_steps {
                let text = format!("the run exceeds {} steps", self.max_steps);
                let mut error = self.deadlock(String::new());
                (error.kind, error.text) = (FaultKind::Limit, text);
                return Err(error);
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
                0 => "no warp can make progress".to_owned(),
                n => format!("no warp can make progress, and {n} clusters wait to become resident"),
            };
            return Err(self.deadlock(why));
        }
    }

    /// Makes the next cluster resident at index `at`.
    fn start(&mut self, at: usize) {
        self.resident[at] = self.waiting.next().map(|index| {
            let (cluster, mut warps) = Cluster::new(self.env, index);
            for w in &mut warps {
                w.queued = true;
            }
            self.ready.extend((0..warps.len()).map(|w| (at, w)));
            ResidentCluster {
                cluster,
                warps,
                steps_ready: 0,
            }
        });
    }

    /// Runs the next warp, or completes an asynchronous op that a warp needs.
    fn turn(&mut self) -> Result<bool> {
        let eager = self.env.timing == Timing::Eager;
        let turn = TurnLimits {
            visible: VISIBLE_OPS_PER_TURN,
            stop_at_async: eager,
            next_remote: eager,
            further_remote: eager,
        };
        let remote = TurnLimits {
            next_remote: true,
            ..turn
        };
        // After a round of polls without progress, force another event.
        if self.failed_polls > self.forced_at + 2 * self.ready.len() as u64 {
            self.forced_at = self.failed_polls;
            if let Some(key) = self.remote.pop_front() {
                return self.run_warp(key, remote);
            }
            if self.complete_oldest()? {
                (self.failed_polls, self.forced_at) = (0, 0);
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

    /// Runs a turn that the random stream selects.
    fn random_turn(&mut self) -> Result<bool> {
        let warps = self.ready.len() * self.weights.0;
        let steps_ready: usize = self.resident.iter().flatten().map(|r| r.steps_ready).sum();
        if warps + steps_ready == 0 {
            return Ok(false);
        }
        let pick = self.rng.below(warps + steps_ready * self.weights.1);
        if pick < warps {
            let i = pick / self.weights.0;
            let Some(key) = self.ready.swap_remove_back(i) else {
                return Ok(false);
            };
            let turn = TurnLimits {
                visible: 1,
                stop_at_async: false,
                next_remote: true,
                further_remote: true,
            };
            return self.run_warp(key, turn);
        }
        let mut i = (pick - warps) / self.weights.1;
        let found = self.resident.iter().position(|r| {
            let n = r.as_ref().map_or(0, |r| r.steps_ready);
            let here = i < n;
            i -= if here { 0 } else { n };
            here
        });
        let Some(at) = found else { return Ok(false) };
        self.random_step(at, i)?;
        Ok(true)
    }

    /// Runs one step of the `i`th asynchronous op of a cluster.
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
            let ready = r.cluster.engines.ready_wgmmas().nth(i - copies);
            let (group, _) = ready.unwrap_or_default();
            complete_wgmma(self.env, &mut r.cluster, &mut r.warps, group, self.counters)
        };
        self.failed_polls = 0;
        self.report_async_fault(at, stepped)?;
        self.wake_and_retire(at)
    }

    /// Runs a warp and requeues it.
    fn run_warp(&mut self, (at, w): WarpKey, turn: TurnLimits) -> Result<bool> {
        let Some(r) = &mut self.resident[at] else {
            return Ok(true);
        };
        let before = r.cluster.progress;
        let warp = &mut r.warps[w];
        let mut m = WarpMachine {
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
            race: None,
            help: None,
            branch: None,
        };
        let stop = m.run(turn);
        self.steps = m.now;
        let submitted = m.submitted;
        let stop = match stop {
            Ok(stop) => stop,
            Err(fault) => {
                let (site, branch) = (m.site, m.branch);
                let (lane, other, race, help) = (m.lane, m.other, m.race, m.help);
                let mut e = report::fault(self.env, r, w, site, fault);
                (e.lane, e.other, e.race, e.help) = (lane, other, race, help);
                if let Some(branch) = branch {
                    let (cluster, warp) = (r.cluster.index, r.warps[w].id);
                    e.at = Some(self.env.branch_location(cluster, warp, branch));
                }
                return Err(e);
            }
        };
        if stop == Stop::Exited {
            let (cluster, warp) = (&mut r.cluster, &mut r.warps[w]);
            cluster.exit_warp(warp);
            self.check_exit(at, w)?;
        }
        let progress = self.resident[at]
            .as_ref()
            .is_none_or(|r| r.cluster.progress != before);
        match stop {
            Stop::Polled if !progress => self.failed_polls += 1,
            _ => (self.failed_polls, self.forced_at) = (0, 0),
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
        self.wake_and_retire(at)?;
        self.check_loops((at, w), progress)?;
        if self.failed_polls < POLL_LIMIT {
            return Ok(true);
        }
        // If all warps only poll and no asynchronous op is in flight, no value can change.
        Err(self.deadlock(LIVELOCK.into()))
    }

    /// Detects endless loops: all ready warps repeat their states, or one runs too long without a
    /// wait.
    fn check_loops(&mut self, key: WarpKey, progress: bool) -> Result<()> {
        if progress {
            self.livelock.record_change(self.steps);
        }
        let Some(r) = &mut self.resident[key.0] else {
            return Ok(());
        };
        let warp = &mut r.warps[key.1];
        if warp.status != Status::Ready {
            warp.ops_at_last_wait = warp.executed.ops;
        }
        if warp.executed.ops - warp.ops_at_last_wait > MAX_OPS_WITHOUT_WAIT {
            let why = format!("endless loop: a warp ran {MAX_OPS_WITHOUT_WAIT} ops without a wait");
            return Err(self.deadlock(why));
        }
        if progress || !self.livelock.record_turn(key, warp, self.steps) {
            return Ok(());
        }
        let all = self.ready.iter().chain(&self.remote);
        if !all.clone().all(|key| self.livelock.repeats(key)) {
            return Ok(());
        }
        // An asynchronous op in flight may change the values that the warps read.
        if self.complete_oldest()? {
            self.livelock.record_change(self.steps);
            return Ok(());
        }
        let why = "endless loop: all running warps repeat their states, and no other warp can make progress";
        Err(self.deadlock(why.into()))
    }

    /// Wakes the warps whose waits pass, and retires the cluster if all warps have exited.
    fn wake_and_retire(&mut self, at: usize) -> Result<()> {
        let Some(r) = &mut self.resident[at] else {
            return Ok(());
        };
        if std::mem::take(&mut r.cluster.notified) {
            for i in 0..r.warps.len() {
                let w = &r.warps[i];
                if let (false, Status::Waiting(on)) = (w.queued, &w.status)
                    && r.cluster.wait_passes(w, on)
                {
                    r.warps[i].queued = true;
                    self.ready.push_back((at, i));
                }
            }
        }
        let engines = &r.cluster.engines;
        r.steps_ready = engines.copies.len() + engines.ready_wgmmas().count();
        if r.cluster.has_exited() {
            self.complete_all(at)?;
            for _ in 0..self.env.threads.ctas {
                self.counters.ctas += 1;
                (self.done)();
            }
            self.start(at);
        }
        Ok(())
    }

    /// Checks the exit of a warp's CTA: no asynchronous op may be in flight on its shared memory, and
    /// accesses of other CTAs must be ordered before the exit.
    fn check_exit(&mut self, at: usize, w: usize) -> Result<()> {
        let Some(r) = &self.resident[at] else {
            return Ok(());
        };
        let cta = r.warps[w].cta;
        let c = &r.cluster.ctas[cta as usize];
        if !self.env.races || c.live > 0 {
            return Ok(());
        }
        let in_flight = if c.shared.has_claims() {
            r.cluster.engines.in_flight_on_cta(cta)
        } else {
            None
        };
        // An access of another CTA must be ordered before the exit of a thread of this CTA.
        let exit_clock = c.exited_clock.as_ref();
        let unordered_use =
            exit_clock.and_then(|exit_clock| c.remote_uses.unordered(|m| exit_clock.has_seen(m)));
        let (warp, site, text) = match (in_flight, unordered_use) {
            (Some((warp, site)), _) => (
                warp,
                site,
                format!(
                    "is still in flight on the shared memory of CTA rank {cta}, which has exited"
                ),
            ),
            (None, Some(last)) => (
                last.warp,
                last.site,
                format!(
                    "accesses CTA rank {cta}, which may have exited by then; nothing orders its exit after this access"
                ),
            ),
            (None, None) => return self.check_phases_complete(r, w),
        };
        let fault = Fault::new(FaultKind::PeerExited, text);
        let mut e = report::fault(self.env, r, warp as usize, site, fault);
        e.help = Some("end the kernel with a cluster barrier after the last remote access");
        Err(e)
    }

    /// Checks that an exited CTA left no mbarrier phase incomplete.
    fn check_phases_complete(&self, r: &ResidentCluster, w: usize) -> Result<()> {
        if !self.env.require_complete_phases {
            return Ok(());
        }
        let cta = r.warps[w].cta;
        let bars = r.cluster.ctas[cta as usize].bars.iter().zip(0..);
        let incomplete = { bars }.find_map(|(b, slot)| Some((b, b.open_phase_count()?, slot)));
        let Some((b, count, slot)) = incomplete else {
            return Ok(());
        };
        let (name, index) = self.env.barrier_name(ResolvedBarrier { cta, slot });
        let (arrivals, bytes) = (b.arrivals, b.bytes);
        let text = format!(
            "the CTA exits during a phase of {name}[{index}]: {arrivals} of {count} arrivals and {bytes} bytes are missing"
        );
        Err(Box::new(RunError {
            kind: FaultKind::Barrier,
            text,
            at: None,
            lane: None,
            other: None,
            race: None,
            help: None,
            waits: Vec::new(),
        }))
    }

    fn report_async_fault(
        &self,
        at: usize,
        stepped: std::result::Result<(), AsyncFault>,
    ) -> Result<()> {
        match (stepped, &self.resident[at]) {
            (Err(f), Some(r)) => Err(report::fault(self.env, r, f.warp as usize, f.site, f.fault)),
            _ => Ok(()),
        }
    }

    /// Completes an asynchronous op, or only the reads of its source.
    fn complete(&mut self, at: usize, step: EngineStep) -> Result<()> {
        let Some(r) = &mut self.resident[at] else {
            return Ok(());
        };
        let stepped = match step {
            EngineStep::Wgmma { group } => {
                complete_wgmma(self.env, &mut r.cluster, &mut r.warps, group, self.counters)
            }
            EngineStep::Copy { at, read } => loop {
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
        self.report_async_fault(at, stepped)
    }

    /// Completes all asynchronous ops that can complete.
    fn complete_all(&mut self, at: usize) -> Result<()> {
        loop {
            let Some(r) = &self.resident[at] else {
                return Ok(());
            };
            let engines = &r.cluster.engines;
            let wgmma = engines.ready_wgmmas().next();
            let step = match (engines.copies.is_empty(), wgmma) {
                (false, _) => EngineStep::Copy { at: 0, read: false },
                (true, Some((group, _))) => EngineStep::Wgmma { group },
                (true, None) => return Ok(()),
            };
            self.complete(at, step)?;
        }
    }

    /// `late`: completes the oldest asynchronous op that a waiting warp needs.
    fn complete_needed(&mut self) -> Result<bool> {
        for at in 0..self.resident.len() {
            let Some(r) = &self.resident[at] else {
                continue;
            };
            let needs = r.warps.iter().filter_map(|w| match &w.status {
                Status::Waiting(on) => needed(&r.cluster, w, on),
                _ => None,
            });
            if let Some((_, step)) = needs.min_by_key(|(number, _)| *number) {
                self.complete(at, step)?;
                self.wake_and_retire(at)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Completes the oldest asynchronous op of a cluster: a polling warp may need any of them.
    fn complete_oldest(&mut self) -> Result<bool> {
        for at in 0..self.resident.len() {
            let Some(r) = &self.resident[at] else {
                continue;
            };
            let e = &r.cluster.engines;
            let copy = |(at, c): (usize, &Copy)| (c.number, EngineStep::Copy { at, read: false });
            let copies = e.copies.iter().enumerate().map(copy);
            let wgmmas = e
                .ready_wgmmas()
                .map(|(group, number)| (number, EngineStep::Wgmma { group }));
            if let Some((_, step)) = copies.chain(wgmmas).min_by_key(|(number, _)| *number) {
                self.complete(at, step)?;
                self.wake_and_retire(at)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn deadlock(&self, why: String) -> Box<RunError> {
        report::deadlock(self.env, self.resident.iter().flatten(), why)
    }
}

/// Returns the oldest asynchronous op that a waiting warp needs, with its issue number.
fn needed(cluster: &Cluster, w: &Warp, on: &Waiting) -> Option<(u64, EngineStep)> {
    let e = &cluster.engines;
    let copies = e.copies.iter().enumerate();
    match *on {
        Waiting::Mbarrier { bar, .. } => copies
            .filter(|(_, c)| {
                c.job.completion() == JobCompletion::Bytes(bar) || e.arrival_needs(c, bar)
            })
            .map(|(at, c)| (c.number, EngineStep::Copy { at, read: false }))
            .next(),
        Waiting::Bulk {
            lane,
            pending,
            read,
        } => copies
            .filter(|(_, c)| e.bulk_wait_needs(c, w.id, lane, pending, read))
            .map(|(at, c)| (c.number, EngineStep::Copy { at, read }))
            .next(),
        Waiting::Copies { lane, end } => copies
            .filter(|(_, c)| c.warp == w.id && c.is_of_lane(lane, end))
            .map(|(at, c)| (c.number, EngineStep::Copy { at, read: false }))
            .next(),
        Waiting::Wgmma { .. } => {
            let (group, wgmmas) = e.wgmma_queue_and_group(w);
            wgmmas.ready().map(|n| (n, EngineStep::Wgmma { group }))
        }
        _ => None,
    }
}
