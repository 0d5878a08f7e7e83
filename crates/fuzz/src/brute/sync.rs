//! Synchronization ops.

use super::env::LaunchEnv;
use super::happens_before::AccessKind;
use super::machine::{CopyEngine, WarpMachine, lanes_of, order_fault};
use super::state::{BarrierState, InFlight, State};
use warpline_ir::{
    Exec, ExecStatus, Fault, FaultKind, FenceKind, JobCompletion, Machine, ResolvedBarrier, Scope,
    SyncOp, WARP,
};

impl WarpMachine<'_, '_> {
    /// Returns the index of an mbarrier over all CTAs.
    fn bar(&self, at: ResolvedBarrier) -> usize {
        at.cta as usize * self.env.bars + at.slot as usize
    }

    /// Records that a lane uses an mbarrier, or initializes or invalidates it (`write`).
    fn access_barrier(&mut self, lane: usize, bar: usize, write: bool) -> Result<(), Fault> {
        let (me, cta) = (self.lane_observer(lane), bar / self.env.bars.max(1));
        let kind = if write {
            AccessKind::Init
        } else {
            AccessKind::Generic
        };
        let event = self.st.events.add(kind, write, !write, me, cta);
        let cell = self.env.bar_cell(bar);
        let touched = self.st.events.touch(cell, event);
        touched.map_err(|why| order_fault(why, "an mbarrier op"))?;
        if !write && !self.st.bars[bar].live {
            return Err(Fault::new(
                FaultKind::Barrier,
                "the mbarrier is not initialized",
            ));
        }
        Ok(())
    }

    pub(super) fn synchronize(&mut self, s: &SyncOp) -> Exec {
        let active = self.active();
        match *s {
            SyncOp::Warp { mask } => {
                let mask = self.get::<u32>(mask)[active.trailing_zeros() as usize];
                self.join_lanes(mask);
            }
            SyncOp::Init { bar, count } => {
                for lane in lanes_of(active) {
                    let at = self.resolve_bar(&bar, lane)?;
                    let bar = self.bar(at);
                    self.access_barrier(lane, bar, true)?;
                    let b = &mut self.st.bars[bar];
                    (b.live, b.count, b.left, b.bytes, b.parity) = (true, count, count, 0, false);
                }
            }
            SyncOp::Inval { bar } => {
                for lane in lanes_of(active) {
                    let at = self.resolve_bar(&bar, lane)?;
                    let bar = self.bar(at);
                    self.access_barrier(lane, bar, true)?;
                    self.st.bars[bar].live = false;
                }
            }
            SyncOp::Arrive {
                bar,
                count,
                tx,
                scope,
                drop: leaves,
            } => {
                let counts = self.get::<u32>(count);
                let bytes = tx.map_or([0; WARP], |tx| self.get::<u32>(tx));
                for lane in lanes_of(active) {
                    let at = self.resolve_bar(&bar, lane)?;
                    let bar = self.bar(at);
                    self.access_barrier(lane, bar, false)?;
                    self.st.bars[bar].bytes += i64::from(bytes[lane]);
                    if leaves {
                        let b = &mut self.st.bars[bar];
                        b.count = b.count.saturating_sub(counts[lane]);
                    }
                    let (me, cta) = (self.lane_observer(lane), self.cta());
                    let cta_slot = self.env.bar_slot(bar, false, false, cta);
                    self.st.events.acquire(cta_slot, me);
                    if scope != Scope::Cta {
                        let wide_slot = self.env.bar_slot(bar, false, true, cta);
                        self.st.events.acquire(wide_slot, me);
                    }
                    arrive(self.env, self.st, bar, counts[lane])?;
                }
            }
            SyncOp::ExpectTx { bar, tx } => {
                let bytes = self.get::<u32>(tx);
                for lane in lanes_of(active) {
                    let at = self.resolve_bar(&bar, lane)?;
                    let bar = self.bar(at);
                    self.access_barrier(lane, bar, false)?;
                    self.st.bars[bar].bytes += i64::from(bytes[lane]);
                    complete_phase(self.env, self.st, bar);
                }
            }
            SyncOp::Wait { bar, parity, scope } | SyncOp::Test { bar, parity, scope } => {
                let parity = self.get::<u32>(parity);
                for lane in lanes_of(active) {
                    let at = self.resolve_bar(&bar, lane)?;
                    let bar = self.bar(at);
                    if !self.st.bars[bar].live {
                        return Err(Fault::new(
                            FaultKind::Barrier,
                            "the mbarrier is not initialized",
                        ));
                    }
                    if self.st.bars[bar].parity == (parity[lane] & 1 == 1) {
                        return Ok(ExecStatus::Blocked);
                    }
                }
                for lane in lanes_of(active) {
                    let at = self.resolve_bar(&bar, lane)?;
                    let bar = self.bar(at);
                    self.access_barrier(lane, bar, false)?;
                    let (me, own) = (self.lane_observer(lane), self.cta());
                    for cta in 0..self.env.ctas {
                        let wide = cta != own;
                        if !wide || scope != Scope::Cta {
                            let slot = self.env.bar_slot(bar, true, wide, cta);
                            self.st.events.acquire(me, slot);
                        }
                    }
                }
            }
            SyncOp::NamedSync { bar, threads } => {
                let (cta, id) = (self.cta(), bar.index());
                match self.st.warps[self.warp].barrier {
                    BarrierState::Released => {
                        self.st.warps[self.warp].barrier = BarrierState::Idle;
                        return Ok(ExecStatus::Completed);
                    }
                    BarrierState::Arrived => return Ok(ExecStatus::Blocked),
                    BarrierState::Idle => {}
                }
                self.st.warps[self.warp].barrier = BarrierState::Arrived;
                self.arrive_named(cta, id, threads)?;
                return match self.st.warps[self.warp].barrier {
                    BarrierState::Released => {
                        self.st.warps[self.warp].barrier = BarrierState::Idle;
                        Ok(ExecStatus::Completed)
                    }
                    _ => Ok(ExecStatus::Blocked),
                };
            }
            SyncOp::NamedArrive { bar, threads } => {
                self.arrive_named(self.cta(), bar.index(), threads)?
            }
            SyncOp::Cta => return self.cta_barrier(),
            SyncOp::ClusterArrive { release } => {
                let slot = self.env.cluster_slot(false);
                match release {
                    true => self.release_all_lanes(slot),
                    false => {
                        for lane in 0..WARP {
                            let me = self.lane_observer(lane);
                            self.st.events.acquire_inits(slot, me);
                        }
                    }
                }
                self.st.warps[self.warp].arrived_at = self.st.cluster.1;
                self.st.cluster.0 += 1;
                complete_cluster_phase(self.env, self.st);
            }
            SyncOp::ClusterWait => {
                if self.st.cluster.1 == self.st.warps[self.warp].arrived_at {
                    return Ok(ExecStatus::Blocked);
                }
                let slot = self.env.cluster_slot(true);
                self.acquire_all_lanes(slot);
            }
            SyncOp::Fence(fence) => {
                let cta = self.cta();
                if fence == FenceKind::MbarrierInit {
                    for lane in lanes_of(active) {
                        let me = self.lane_observer(lane);
                        self.st.events.fence_inits(me);
                    }
                }
                let own = match fence {
                    FenceKind::ProxyAsyncShared => Some(cta),
                    FenceKind::ProxyAsyncCluster | FenceKind::ProxyAsync => None,
                    _ => return Ok(ExecStatus::Completed),
                };
                for lane in lanes_of(active) {
                    let me = self.lane_observer(lane);
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
            SyncOp::BulkWait { pending, .. } => {
                return Ok(self.wait_for_groups(Some(pending), true));
            }
            SyncOp::CopyWait { pending } => return Ok(self.wait_for_groups(pending, false)),
            SyncOp::CopyArrive { bar, noinc } => {
                let mut arrivals = Vec::new();
                let (mut jobs, mut events) = (Vec::new(), Vec::new());
                for lane in lanes_of(active) {
                    let at = self.resolve_bar(&bar, lane)?;
                    let index = self.bar(at);
                    self.access_barrier(lane, index, false)?;
                    if !noinc {
                        self.st.bars[index].left += 1;
                    }
                    arrivals.push((at, lane));
                    let issued: Vec<usize> = self.st.warps[self.warp].copies[lane].concat();
                    for job in issued {
                        match &self.st.in_flight[job] {
                            Some(InFlight::Job {
                                events: accesses, ..
                            }) => {
                                events.extend(accesses.iter().filter(|e| e.0 == lane));
                                if !jobs.contains(&job) {
                                    jobs.push(job);
                                }
                            }
                            // The copy has completed.
                            _ => {
                                let done = self.st.events.finished(job, lane);
                                events.extend(done.map(|e| (lane, e)));
                            }
                        }
                    }
                }
                let cta = self.cta();
                self.st.in_flight.push(Some(InFlight::Arrival {
                    arrivals,
                    jobs,
                    events,
                    cta,
                }));
            }
            _ => {
                return Err(Fault::new(
                    FaultKind::Illegal,
                    "a synchronization op that the brute-force machine does not support",
                ));
            }
        }
        Ok(ExecStatus::Completed)
    }

    /// Joins lanes: the events that any of them has seen become visible to all of them.
    fn join_lanes(&mut self, mask: u32) {
        let Some(first) = lanes_of(mask).next() else {
            return;
        };
        let first = self.lane_observer(first);
        for lane in lanes_of(mask) {
            let me = self.lane_observer(lane);
            self.st.events.acquire(first, me);
        }
        for lane in lanes_of(mask) {
            let me = self.lane_observer(lane);
            self.st.events.acquire(me, first);
        }
    }

    /// Publishes the visible events of every lane of the warp to a slot.
    fn release_all_lanes(&mut self, slot: usize) {
        for lane in 0..WARP {
            let me = self.lane_observer(lane);
            self.st.events.acquire(slot, me);
        }
    }

    fn acquire_all_lanes(&mut self, slot: usize) {
        for lane in 0..WARP {
            let me = self.lane_observer(lane);
            self.st.events.acquire(me, slot);
        }
    }

    /// Lets the warp arrive at a named barrier.
    fn arrive_named(&mut self, cta: usize, id: usize, threads: u32) -> Result<(), Fault> {
        let slot = self.env.named_slot(cta, id);
        self.release_all_lanes(slot);
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
            self.st.warps[w].barrier = BarrierState::Released;
            for lane in 0..WARP {
                self.st.events.acquire(w * WARP + lane, slot);
            }
        }
        self.st.events.clear(slot);
        Ok(())
    }

    /// Returns whether a warp waits at a named barrier.
    fn at_named(&self, w: usize, id: usize) -> bool {
        use super::code::Inst;
        use warpline_ir::Op;
        let warp = &self.st.warps[w];
        let at = self.env.code[warp.role].get(warp.pc);
        warp.barrier == BarrierState::Arrived
            && matches!(at, Some(Inst::Op(Op::NamedSync(o))) if o.bar.index() == id)
    }

    fn cta_barrier(&mut self) -> Exec {
        let cta = self.cta();
        match self.st.warps[self.warp].barrier {
            BarrierState::Released => {}
            BarrierState::Arrived => return Ok(ExecStatus::Blocked),
            BarrierState::Idle => {
                let slot = self.env.cta_slot(cta);
                self.release_all_lanes(slot);
                self.st.warps[self.warp].barrier = BarrierState::Arrived;
                release_cta_barrier(self.env, self.st, cta);
            }
        }
        match self.st.warps[self.warp].barrier {
            BarrierState::Released => {
                self.st.warps[self.warp].barrier = BarrierState::Idle;
                Ok(ExecStatus::Completed)
            }
            _ => Ok(ExecStatus::Blocked),
        }
    }

    /// Waits for groups of bulk stores, or of `cp.async`.
    fn wait_for_groups(&mut self, pending: Option<u32>, bulk: bool) -> ExecStatus {
        let active = self.active();
        let mut completed = Vec::new();
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
                if matches!(self.st.in_flight[job], Some(InFlight::Job { .. })) {
                    return ExecStatus::Blocked;
                }
                completed.push((lane, job));
            }
        }
        for (lane, job) in completed {
            let me = self.lane_observer(lane);
            let finished: Vec<usize> = self.st.events.finished(job, lane).collect();
            for event in finished {
                self.st.events.publish(me, event);
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

/// Releases the CTA barrier if all running warps have arrived.
pub(super) fn release_cta_barrier(env: &LaunchEnv<'_>, st: &mut State, cta: usize) {
    let is_running = |w: &super::state::Warp| w.cta == cta && !w.done;
    let is_at_barrier = |w: &super::state::Warp| {
        let at = env.code[w.role].get(w.pc);
        let here = matches!(at, Some(super::code::Inst::Op(warpline_ir::Op::CtaSync(_))));
        w.barrier == BarrierState::Arrived && here
    };
    let all: Vec<usize> = (0..st.warps.len())
        .filter(|&w| is_running(&st.warps[w]))
        .collect();
    if all.is_empty() || !all.iter().all(|&w| is_at_barrier(&st.warps[w])) {
        return;
    }
    let slot = env.cta_slot(cta);
    for w in all {
        st.warps[w].barrier = BarrierState::Released;
        for lane in 0..WARP {
            st.events.acquire(w * WARP + lane, slot);
        }
    }
    st.events.clear(slot);
}

/// Completes a phase of the cluster barrier if all running warps have arrived.
pub(super) fn complete_cluster_phase(env: &LaunchEnv<'_>, st: &mut State) {
    let live = st.warps.iter().filter(|w| !w.done).count() as u32;
    if st.cluster.0 > 0 && st.cluster.0 >= live {
        st.cluster = (0, st.cluster.1 + 1);
        let (current, completed) = (env.cluster_slot(false), env.cluster_slot(true));
        st.events.acquire(completed, current);
        st.events.clear(current);
    }
}

/// Counts arrivals at an mbarrier.
fn arrive(env: &LaunchEnv<'_>, st: &mut State, bar: usize, count: u32) -> Result<(), Fault> {
    let b = &mut st.bars[bar];
    if count > b.left {
        return Err(Fault::new(FaultKind::Barrier, "too many arrivals"));
    }
    b.left -= count;
    complete_phase(env, st, bar);
    Ok(())
}

/// Completes the phase of an mbarrier that has no pending arrival and no pending byte.
fn complete_phase(env: &LaunchEnv<'_>, st: &mut State, bar: usize) {
    let b = &mut st.bars[bar];
    if b.left > 0 || b.bytes != 0 {
        return;
    }
    b.left = b.count;
    b.parity = !b.parity;
    for cta in 0..env.ctas {
        for wide in [false, true] {
            let (current, completed) = (
                env.bar_slot(bar, false, wide, cta),
                env.bar_slot(bar, true, wide, cta),
            );
            st.events.acquire(completed, current);
            st.events.clear(current);
        }
    }
}

/// Completes an asynchronous op if it can complete; returns whether it did.
pub(super) fn complete_in_flight(
    env: &LaunchEnv<'_>,
    st: &mut State,
    id: usize,
) -> Result<bool, Fault> {
    let Some(entry) = st.in_flight[id].clone() else {
        return Ok(false);
    };
    match entry {
        InFlight::Job { job, events, slot } => {
            st.in_flight[id] = None;
            let mut moved = 0;
            for piece in 0..job.pieces() {
                moved += job.complete(piece, &mut CopyEngine(st))?;
            }
            st.events.finish(id, events.clone());
            if let JobCompletion::Bytes(at) = job.completion() {
                let bar = at.cta as usize * env.bars + at.slot as usize;
                if !st.bars[bar].live {
                    return Err(Fault::new(
                        FaultKind::Barrier,
                        "transaction bytes for an mbarrier that is not initialized",
                    ));
                }
                for cta in 0..env.ctas {
                    for wide in [false, true] {
                        let current = env.bar_slot(bar, false, wide, cta);
                        // Transaction bytes do not publish generic writes; an arrival must.
                        st.events.acquire_if(current, slot, |e| {
                            e.kind != AccessKind::Generic || !e.write
                        });
                        for &(_, event) in &events {
                            st.events.publish(current, event);
                        }
                    }
                }
                st.bars[bar].bytes -= i64::from(moved);
                complete_phase(env, st, bar);
            }
            Ok(true)
        }
        InFlight::Arrival {
            arrivals,
            jobs,
            events,
            cta,
        } => {
            if jobs.iter().any(|&j| st.in_flight[j].is_some()) {
                return Ok(false);
            }
            st.in_flight[id] = None;
            for (at, lane) in arrivals {
                let bar = at.cta as usize * env.bars + at.slot as usize;
                for &(accessing_lane, event) in &events {
                    if accessing_lane == lane {
                        st.events
                            .publish(env.bar_slot(bar, false, false, cta), event);
                    }
                }
                arrive(env, st, bar, 1)?;
            }
            Ok(true)
        }
    }
}
