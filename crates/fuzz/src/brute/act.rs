//! Acts of synchronization.

use super::env::Env;
use super::know::Kind;
use super::machine::{EngineOf, Runner, lanes_of, unordered};
use super::state::{Flight, Gate, State};
use warpline_ir::{ResolvedBarrier, JobCompletion, Exec, Fault, FaultKind, FenceKind, Machine, Scope, ExecStatus, SyncOp, WARP};

impl Runner<'_, '_> {
    /// The index of a barrier over all CTAs.
    fn bar(&self, at: ResolvedBarrier) -> usize {
        at.cta as usize * self.env.bars + at.slot as usize
    }

    /// Notes that a lane uses a barrier, or makes or ends it.
    fn touch_bar(&mut self, lane: usize, bar: usize, write: bool) -> Result<(), Fault> {
        let (me, cta) = (self.me(lane), bar / self.env.bars.max(1));
        let kind = if write { Kind::Init } else { Kind::Generic };
        let event = self.st.events.add(kind, write, !write, me, cta);
        let cell = self.env.bar_cell(bar);
        let touched = self.st.events.touch(cell, event);
        touched.map_err(|why| unordered(why, "an act on an mbarrier"))?;
        if !write && !self.st.bars[bar].live {
            return Err(Fault::new(FaultKind::Barrier, "no barrier is there"));
        }
        Ok(())
    }

    pub(super) fn act(&mut self, s: &SyncOp) -> Exec {
        let active = self.active();
        match *s {
            SyncOp::Warp { mask } => {
                let mask = self.get::<u32>(mask)[active.trailing_zeros() as usize];
                self.unite(mask);
            }
            SyncOp::Init { bar, count } => {
                for lane in lanes_of(active) {
                    let at = self.resolve_bar(&bar, lane)?;
                    let bar = self.bar(at);
                    self.touch_bar(lane, bar, true)?;
                    let b = &mut self.st.bars[bar];
                    (b.live, b.count, b.left, b.bytes, b.parity) = (true, count, count, 0, false);
                }
            }
            SyncOp::Inval { bar } => {
                for lane in lanes_of(active) {
                    let at = self.resolve_bar(&bar, lane)?;
                    let bar = self.bar(at);
                    self.touch_bar(lane, bar, true)?;
                    self.st.bars[bar].live = false;
                }
            }
            SyncOp::Arrive {
                bar,
                count,
                tx,
                scope,
                drop: leave,
            } => {
                let counts = self.get::<u32>(count);
                let bytes = tx.map_or([0; WARP], |tx| self.get::<u32>(tx));
                for lane in lanes_of(active) {
                    let at = self.resolve_bar(&bar, lane)?;
                    let bar = self.bar(at);
                    self.touch_bar(lane, bar, false)?;
                    self.st.bars[bar].bytes += i64::from(bytes[lane]);
                    if leave {
                        let b = &mut self.st.bars[bar];
                        b.count = b.count.saturating_sub(counts[lane]);
                    }
                    let (me, cta) = (self.me(lane), self.cta());
                    let near = self.env.bar_slot(bar, false, false, cta);
                    self.st.events.learn(near, me);
                    if scope != Scope::Cta {
                        let far = self.env.bar_slot(bar, false, true, cta);
                        self.st.events.learn(far, me);
                    }
                    arrive(self.env, self.st, bar, counts[lane])?;
                }
            }
            SyncOp::ExpectTx { bar, tx } => {
                let bytes = self.get::<u32>(tx);
                for lane in lanes_of(active) {
                    let at = self.resolve_bar(&bar, lane)?;
                    let bar = self.bar(at);
                    self.touch_bar(lane, bar, false)?;
                    self.st.bars[bar].bytes += i64::from(bytes[lane]);
                    completed(self.env, self.st, bar);
                }
            }
            SyncOp::Wait { bar, parity, scope } | SyncOp::Test { bar, parity, scope } => {
                let parity = self.get::<u32>(parity);
                for lane in lanes_of(active) {
                    let at = self.resolve_bar(&bar, lane)?;
                    let bar = self.bar(at);
                    if !self.st.bars[bar].live {
                        return Err(Fault::new(FaultKind::Barrier, "no barrier is there"));
                    }
                    if self.st.bars[bar].parity == (parity[lane] & 1 == 1) {
                        return Ok(ExecStatus::Blocked);
                    }
                }
                for lane in lanes_of(active) {
                    let at = self.resolve_bar(&bar, lane)?;
                    let bar = self.bar(at);
                    self.touch_bar(lane, bar, false)?;
                    let (me, own) = (self.me(lane), self.cta());
                    for cta in 0..self.env.ctas {
                        let wide = cta != own;
                        if !wide || scope != Scope::Cta {
                            let slot = self.env.bar_slot(bar, true, wide, cta);
                            self.st.events.learn(me, slot);
                        }
                    }
                }
            }
            SyncOp::NamedSync { bar, threads } => {
                let (cta, id) = (self.cta(), bar.index());
                match self.st.warps[self.warp].gate {
                    Gate::Passed => {
                        self.st.warps[self.warp].gate = Gate::Open;
                        return Ok(ExecStatus::Completed);
                    }
                    Gate::Arrived => return Ok(ExecStatus::Blocked),
                    Gate::Open => {}
                }
                self.st.warps[self.warp].gate = Gate::Arrived;
                self.come(cta, id, threads)?;
                return match self.st.warps[self.warp].gate {
                    Gate::Passed => {
                        self.st.warps[self.warp].gate = Gate::Open;
                        Ok(ExecStatus::Completed)
                    }
                    _ => Ok(ExecStatus::Blocked),
                };
            }
            SyncOp::NamedArrive { bar, threads } => self.come(self.cta(), bar.index(), threads)?,
            SyncOp::Cta => return self.meet_cta(),
            SyncOp::ClusterArrive { release } => {
                let slot = self.env.cluster_slot(false);
                match release {
                    true => self.all_tell(slot),
                    false => {
                        for lane in 0..WARP {
                            let me = self.me(lane);
                            self.st.events.learn_inits(slot, me);
                        }
                    }
                }
                self.st.warps[self.warp].arrived_at = self.st.cluster.1;
                self.st.cluster.0 += 1;
                close_cluster(self.env, self.st);
            }
            SyncOp::ClusterWait => {
                if self.st.cluster.1 == self.st.warps[self.warp].arrived_at {
                    return Ok(ExecStatus::Blocked);
                }
                let slot = self.env.cluster_slot(true);
                self.all_hear(slot);
            }
            SyncOp::Fence(fence) => {
                let cta = self.cta();
                if fence == FenceKind::MbarrierInit {
                    for lane in lanes_of(active) {
                        let me = self.me(lane);
                        self.st.events.fence_inits(me);
                    }
                }
                let own = match fence {
                    FenceKind::ProxyAsyncShared => Some(cta),
                    FenceKind::ProxyAsyncCluster | FenceKind::ProxyAsync => None,
                    _ => return Ok(ExecStatus::Completed),
                };
                for lane in lanes_of(active) {
                    let me = self.me(lane);
                    self.st.events.fence(me, own);
                }
            }
            SyncOp::BulkCommit => {
                for lane in lanes_of(active) {
                    self.st.warps[self.warp].bulk[lane].push(Vec::new());
                }
            }
            SyncOp::CopyCommit => {
                for lane in lanes_of(active) {
                    self.st.warps[self.warp].copies[lane].push(Vec::new());
                }
            }
            SyncOp::BulkWait { pending, .. } => return Ok(self.groups(Some(pending), true)),
            SyncOp::CopyWait { pending } => return Ok(self.groups(pending, false)),
            SyncOp::CopyArrive { bar, noinc } => {
                let mut arrivals = Vec::new();
                let (mut jobs, mut events) = (Vec::new(), Vec::new());
                for lane in lanes_of(active) {
                    let at = self.resolve_bar(&bar, lane)?;
                    let index = self.bar(at);
                    self.touch_bar(lane, index, false)?;
                    if !noinc {
                        self.st.bars[index].left += 1;
                    }
                    arrivals.push((at, lane));
                    let issued: Vec<usize> = self.st.warps[self.warp].copies[lane].concat();
                    for job in issued {
                        match &self.st.flights[job] {
                            Some(Flight::Job { events: of, .. }) => {
                                events.extend(of.iter().filter(|e| e.0 == lane));
                                if !jobs.contains(&job) {
                                    jobs.push(job);
                                }
                            }
                            // The copy is done already.
                            _ => {
                                let done = self.st.events.finished(job, lane);
                                events.extend(done.map(|e| (lane, e)));
                            }
                        }
                    }
                }
                let cta = self.cta();
                self.st.flights.push(Some(Flight::Arrival {
                    arrivals,
                    jobs,
                    events,
                    cta,
                }));
            }
            _ => {
                return Err(Fault::new(
                    FaultKind::Illegal,
                    "an act that this machine does not have",
                ));
            }
        }
        Ok(ExecStatus::Completed)
    }

    /// Lanes meet: each is told of what all know.
    fn unite(&mut self, mask: u32) {
        let Some(first) = lanes_of(mask).next() else {
            return;
        };
        let first = self.me(first);
        for lane in lanes_of(mask) {
            let me = self.me(lane);
            self.st.events.learn(first, me);
        }
        for lane in lanes_of(mask) {
            let me = self.me(lane);
            self.st.events.learn(me, first);
        }
    }

    /// The warp meets and hands on what it knows.
    fn all_tell(&mut self, slot: usize) {
        for lane in 0..WARP {
            let me = self.me(lane);
            self.st.events.learn(slot, me);
        }
    }

    fn all_hear(&mut self, slot: usize) {
        for lane in 0..WARP {
            let me = self.me(lane);
            self.st.events.learn(me, slot);
        }
    }

    /// The warp comes to a named barrier.
    fn come(&mut self, cta: usize, id: usize, threads: u32) -> Result<(), Fault> {
        let slot = self.env.named_slot(cta, id);
        self.all_tell(slot);
        let n = &mut self.st.named[cta * self.env.kernel.named.len() + id];
        if n.arrived > 0 && n.threads != threads {
            return Err(Fault::new(FaultKind::Barrier, "thread counts differ"));
        }
        (n.arrived, n.threads) = (n.arrived + WARP as u32, threads);
        if n.arrived < threads {
            return Ok(());
        }
        n.arrived = 0;
        let waiting: Vec<usize> = (0..self.st.warps.len())
            .filter(|&w| self.st.warps[w].cta == cta && self.at_named(w, id))
            .collect();
        for w in waiting {
            self.st.warps[w].gate = Gate::Passed;
            for lane in 0..WARP {
                self.st.events.learn(w * WARP + lane, slot);
            }
        }
        self.st.events.clear(slot);
        Ok(())
    }

    /// Does a warp wait at a named barrier?
    fn at_named(&self, w: usize, id: usize) -> bool {
        use super::code::Inst;
        use warpline_ir::Op;
        let warp = &self.st.warps[w];
        let at = self.env.code[warp.role].get(warp.pc);
        warp.gate == Gate::Arrived
            && matches!(at, Some(Inst::Op(Op::NamedSync(o))) if o.bar.index() == id)
    }

    fn meet_cta(&mut self) -> Exec {
        let cta = self.cta();
        match self.st.warps[self.warp].gate {
            Gate::Passed => {}
            Gate::Arrived => return Ok(ExecStatus::Blocked),
            Gate::Open => {
                let slot = self.env.cta_slot(cta);
                self.all_tell(slot);
                self.st.warps[self.warp].gate = Gate::Arrived;
                close_cta(self.env, self.st, cta);
            }
        }
        match self.st.warps[self.warp].gate {
            Gate::Passed => {
                self.st.warps[self.warp].gate = Gate::Open;
                Ok(ExecStatus::Completed)
            }
            _ => Ok(ExecStatus::Blocked),
        }
    }

    /// Waits for groups of bulk stores, or of `cp.async`.
    fn groups(&mut self, pending: Option<u32>, bulk: bool) -> ExecStatus {
        let active = self.active();
        let mut over = Vec::new();
        for lane in lanes_of(active) {
            let warp = &self.st.warps[self.warp];
            let groups = if bulk {
                &warp.bulk[lane]
            } else {
                &warp.copies[lane]
            };
            let covered = match pending {
                None => groups.len(),
                Some(n) => (groups.len() - 1).saturating_sub(n as usize),
            };
            for &job in groups[..covered].iter().flatten() {
                if matches!(self.st.flights[job], Some(Flight::Job { .. })) {
                    return ExecStatus::Blocked;
                }
                over.push((lane, job));
            }
        }
        for (lane, job) in over {
            let me = self.me(lane);
            let told: Vec<usize> = self.st.events.finished(job, lane).collect();
            for event in told {
                self.st.events.tell(me, event);
            }
        }
        for lane in lanes_of(active) {
            let warp = &mut self.st.warps[self.warp];
            let groups = if bulk {
                &mut warp.bulk[lane]
            } else {
                &mut warp.copies[lane]
            };
            let covered = match pending {
                None => groups.len(),
                Some(n) => (groups.len() - 1).saturating_sub(n as usize),
            };
            groups.drain(..covered);
            if groups.is_empty() {
                groups.push(Vec::new());
            }
        }
        ExecStatus::Completed
    }
}

/// Lets the threads of a CTA go on if all that have not ended have come.
pub(super) fn close_cta(env: &Env<'_>, st: &mut State, cta: usize) {
    let mine = |w: &super::state::Warp| w.cta == cta && !w.done;
    let at_cta = |w: &super::state::Warp| {
        let at = env.code[w.role].get(w.pc);
        let here = matches!(at, Some(super::code::Inst::Op(warpline_ir::Op::CtaSync(_))));
        w.gate == Gate::Arrived && here
    };
    let all: Vec<usize> = (0..st.warps.len())
        .filter(|&w| mine(&st.warps[w]))
        .collect();
    if all.is_empty() || !all.iter().all(|&w| at_cta(&st.warps[w])) {
        return;
    }
    let slot = env.cta_slot(cta);
    for w in all {
        st.warps[w].gate = Gate::Passed;
        for lane in 0..WARP {
            st.events.learn(w * WARP + lane, slot);
        }
    }
    st.events.clear(slot);
}

/// Completes a phase of the cluster's barrier if all warps that have not ended have come.
pub(super) fn close_cluster(env: &Env<'_>, st: &mut State) {
    let live = st.warps.iter().filter(|w| !w.done).count() as u32;
    if st.cluster.0 > 0 && st.cluster.0 >= live {
        st.cluster = (0, st.cluster.1 + 1);
        let (now, before) = (env.cluster_slot(false), env.cluster_slot(true));
        st.events.learn(before, now);
        st.events.clear(now);
    }
}

/// Arrivals at a barrier.
fn arrive(env: &Env<'_>, st: &mut State, bar: usize, count: u32) -> Result<(), Fault> {
    let b = &mut st.bars[bar];
    if count > b.left {
        return Err(Fault::new(FaultKind::Barrier, "too many arrivals"));
    }
    b.left -= count;
    completed(env, st, bar);
    Ok(())
}

/// Completes the phase of a barrier that lacks nothing.
fn completed(env: &Env<'_>, st: &mut State, bar: usize) {
    let b = &mut st.bars[bar];
    if b.left > 0 || b.bytes != 0 {
        return;
    }
    b.left = b.count;
    b.parity = !b.parity;
    for cta in 0..env.ctas {
        for wide in [false, true] {
            let (now, before) = (
                env.bar_slot(bar, false, wide, cta),
                env.bar_slot(bar, true, wide, cta),
            );
            st.events.learn(before, now);
            st.events.clear(now);
        }
    }
}

/// Completes work in flight, if it can be; says whether it did.
pub(super) fn complete(env: &Env<'_>, st: &mut State, id: usize) -> Result<bool, Fault> {
    let Some(flight) = st.flights[id].clone() else {
        return Ok(false);
    };
    match flight {
        Flight::Job { job, events, slot } => {
            st.flights[id] = None;
            let mut moved = 0;
            for piece in 0..job.pieces() {
                moved += job.complete(piece, &mut EngineOf(st))?;
            }
            st.events.finish(id, events.clone());
            if let JobCompletion::Bytes(at) = job.completion() {
                let bar = at.cta as usize * env.bars + at.slot as usize;
                if !st.bars[bar].live {
                    return Err(Fault::new(FaultKind::Barrier, "bytes for no barrier"));
                }
                for cta in 0..env.ctas {
                    for wide in [false, true] {
                        let now = env.bar_slot(bar, false, wide, cta);
                        // What generic writes left must be carried by an arrival.
                        st.events
                            .learn_if(now, slot, |e| e.kind != Kind::Generic || !e.write);
                        for &(_, event) in &events {
                            st.events.tell(now, event);
                        }
                    }
                }
                st.bars[bar].bytes -= i64::from(moved);
                completed(env, st, bar);
            }
            Ok(true)
        }
        Flight::Arrival {
            arrivals,
            jobs,
            events,
            cta,
        } => {
            if jobs.iter().any(|&j| st.flights[j].is_some()) {
                return Ok(false);
            }
            st.flights[id] = None;
            for (at, lane) in arrivals {
                let bar = at.cta as usize * env.bars + at.slot as usize;
                for &(of, event) in &events {
                    if of == lane {
                        st.events.tell(env.bar_slot(bar, false, false, cta), event);
                    }
                }
                arrive(env, st, bar, 1)?;
            }
            Ok(true)
        }
    }
}
