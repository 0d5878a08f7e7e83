//! mbarrier ops of one warp.

use crate::barrier::Init;
use crate::clock::Epoch;
use crate::last_uses::LastUse;
use crate::machine::{WarpMachine, lanes_of};
use crate::warp::Waiting;
use warpline_ir::{
    BarRef, Exec, ExecStatus, Fault, FaultKind, Machine, Mask, Operand, ResolvedBarrier,
};

impl WarpMachine<'_, '_> {
    pub(crate) fn mbarrier_init(&mut self, bar: &BarRef, count: u32) -> Exec {
        for lane in lanes_of(self.warp.active) {
            let at = self.resolve_bar(bar, lane)?;
            self.check_not_exited(at.cta)?;
            // A second init after `mbarrier.inval` must be ordered after all earlier uses.
            self.check_uses(at, lane, "initializes")?;
            let init = Init {
                epoch: self.epoch(1 << lane),
                site: self.site,
                fenced: false,
                published_in: None,
            };
            let result =
                self.cluster.ctas[at.cta as usize].bars[at.slot as usize].init(count, init);
            self.with_barrier_name(result, at, lane)?;
            self.record_use(at, 1 << lane);
            self.record_remote_barrier(at, 1 << lane);
        }
        self.cluster.progress += 1;
        Ok(ExecStatus::Completed)
    }

    pub(crate) fn mbarrier_inval(&mut self, bar: &BarRef) -> Exec {
        for lane in lanes_of(self.warp.active) {
            let at = self.live_bar(bar, lane)?;
            self.check_uses(at, lane, "invalidates")?;
            let result = self.cluster.ctas[at.cta as usize].bars[at.slot as usize].invalidate();
            self.with_barrier_name(result, at, lane)?;
            self.record_use(at, 1 << lane);
            self.record_remote_barrier(at, 1 << lane);
        }
        Ok(ExecStatus::Completed)
    }

    /// Returns the current epoch of some lanes.
    pub(crate) fn epoch(&self, lanes: Mask) -> Epoch {
        Epoch {
            thread: self.warp.id,
            lanes,
            clock: self.warp.clock.as_ref().map_or(0, |c| c.now),
        }
    }

    /// Records a use of a barrier; `mbarrier.inval` must be ordered after it.
    fn record_use(&mut self, at: ResolvedBarrier, lanes: Mask) {
        let epoch = self.epoch(lanes);
        self.record_use_at(at, epoch);
    }

    /// Records the use of the current phase of a barrier by a copy; a wait for the phase acquires it.
    pub(crate) fn record_phase_use(&mut self, at: ResolvedBarrier) {
        let b = &self.cluster.ctas[at.cta as usize].bars[at.slot as usize];
        let epoch = Epoch {
            thread: self.cluster.threads.barrier(at.cta, at.slot),
            lanes: Mask::MAX,
            clock: b.phase,
        };
        self.record_use_at(at, epoch);
    }

    fn record_use_at(&mut self, at: ResolvedBarrier, epoch: Epoch) {
        let (warp, site) = (self.warp.id, self.site);
        let b = &mut self.cluster.ctas[at.cta as usize].bars[at.slot as usize];
        if let Some(uses) = &mut b.uses {
            uses.record(LastUse { epoch, warp, site });
        }
    }

    /// Checks that an init or invalidation of a barrier is ordered after all its uses.
    fn check_uses(&mut self, at: ResolvedBarrier, lane: usize, verb: &str) -> Result<(), Fault> {
        let b = &self.cluster.ctas[at.cta as usize].bars[at.slot as usize];
        let (Some(uses), Some(clock)) = (&b.uses, &self.warp.clock) else {
            return Ok(());
        };
        let Some(last) = uses.unordered(|m| clock.has_seen(lane as u8, m)) else {
            return Ok(());
        };
        self.other = Some(self.op_location(last.warp, last.site));
        self.help = Some("synchronize all users of the mbarrier before this op");
        let fault = Fault::new(
            FaultKind::Race,
            format!(
                "{verb} an mbarrier that another thread may still use; nothing orders that use before this op"
            ),
        );
        self.with_barrier_name(Err(fault), at, lane)
    }

    /// Records an access to a barrier, if it is in another CTA.
    fn record_remote_barrier(&mut self, at: ResolvedBarrier, lanes: Mask) {
        if at.cta != self.warp.cta {
            self.record_remote_access(at.cta, lanes);
        }
    }

    /// Records an access to another CTA; that CTA must not exit before the access.
    pub(crate) fn record_remote_access(&mut self, cta: u32, lanes: Mask) {
        if !self.env.races {
            return;
        }
        let epoch = self.epoch(lanes);
        let (warp, site) = (self.warp.id, self.site);
        let remote_uses = &mut self.cluster.ctas[cta as usize].remote_uses;
        remote_uses.record(LastUse { epoch, warp, site });
    }

    /// Adds the barrier's name and the lane to a fault.
    fn with_barrier_name<T>(
        &mut self,
        r: Result<T, Fault>,
        at: ResolvedBarrier,
        lane: usize,
    ) -> Result<T, Fault> {
        r.map_err(|f| {
            let (name, index) = self.env.barrier_name(at);
            self.lane_fault(lane, f.kind, format!("{} ({name}[{index}])", f.text))
        })
    }

    /// Resolves a barrier and checks that a lane may use it.
    pub(crate) fn live_bar(&mut self, bar: &BarRef, lane: usize) -> Result<ResolvedBarrier, Fault> {
        let at = self.resolve_bar(bar, lane)?;
        self.check_bar(at, 1 << lane)?;
        Ok(at)
    }

    /// Checks that a barrier is initialized, and that its init is visible to these lanes.
    pub(crate) fn check_bar(&mut self, at: ResolvedBarrier, lanes: Mask) -> Result<(), Fault> {
        self.check_not_exited(at.cta)?;
        let b = &self.cluster.ctas[at.cta as usize].bars[at.slot as usize];
        let live = b.check_live();
        let visible_to_all = match (&b.init, &self.warp.clock) {
            (Some(init), Some(clock)) => init.fenced && clock.all_have_seen(&init.epoch),
            _ => true,
        };
        self.with_barrier_name(live, at, lanes.trailing_zeros() as usize)?;
        if visible_to_all {
            return Ok(());
        }
        lanes_of(lanes).try_for_each(|lane| self.check_init(at, lane))
    }

    /// Checks that the init of a barrier is visible to a lane.
    fn check_init(&mut self, at: ResolvedBarrier, lane: usize) -> Result<(), Fault> {
        let init = self.cluster.ctas[at.cta as usize].bars[at.slot as usize].init;
        let (Some(init), Some(clock)) = (init, &self.warp.clock) else {
            return Ok(());
        };
        let is_own = init.epoch.thread == self.warp.id && init.epoch.lanes == 1 << lane;
        let why = if is_own {
            return Ok(());
        } else if !init.fenced {
            "the lane that initialized it did not run `fence.mbarrier_init`"
        } else if !clock.has_seen(lane as u8, &init.epoch)
            && init
                .published_in
                .is_none_or(|phase| phase >= self.warp.cluster_phases_passed)
        {
            "no CTA, named or cluster barrier orders its init before this use"
        } else {
            return Ok(());
        };
        self.other = Some(self.op_location(init.epoch.thread, init.site));
        self.help =
            Some("after the inits, call `fence_mbarrier_init()` and a CTA or cluster barrier");
        let fault = Fault::new(
            FaultKind::Barrier,
            format!("uses an mbarrier whose init may not be visible: {why}"),
        );
        self.with_barrier_name(Err(fault), at, lane)
    }

    /// Expects bytes and arrives, separately for each active lane.
    pub(crate) fn mbarrier_arrive(
        &mut self,
        bar: &BarRef,
        count: Option<Operand>,
        tx: Option<Operand>,
        drop_out: bool,
    ) -> Exec {
        let mut remaining = self.warp.active;
        while remaining != 0 {
            let (at, lanes) = self.group_by_barrier(bar, remaining)?;
            remaining &= !lanes;
            self.record_use(at, lanes);
            self.record_remote_barrier(at, lanes);
            let counts = match count {
                Some(Operand::Imm(n)) => n * u64::from(lanes.count_ones()),
                Some(o) => lanes_of(lanes)
                    .map(|l| u64::from(self.lane_value(o, l)))
                    .sum(),
                None => 0,
            };
            // If all arrivals count in the current phase, the lanes publish together. Otherwise each
            // lane publishes to the phase in which its arrival counts.
            let b = &mut self.cluster.ctas[at.cta as usize].bars[at.slot as usize];
            let together = counts <= u64::from(b.arrivals);
            if let (Some(p), Some(clock), true, Some(_)) =
                (&mut b.clocks, &self.warp.clock, together, count)
            {
                clock.publish(lanes, &mut p.arrived_clock);
            }
            for lane in lanes_of(lanes) {
                let tx = tx.map_or(0, |o| self.lane_value(o, lane));
                let count = count.map(|o| self.lane_value(o, lane));
                let b = &mut self.cluster.ctas[at.cta as usize].bars[at.slot as usize];
                if let (Some(p), Some(clock), false, Some(_)) =
                    (&mut b.clocks, &self.warp.clock, together, count)
                {
                    clock.publish(1 << lane, &mut p.arrived_clock);
                }
                let done = b
                    .expect_bytes(tx)
                    .and_then(|()| count.map_or(Ok(false), |n| b.arrive(n, drop_out)));
                self.with_barrier_name(done, at, lane)?;
            }
        }
        if let (Some(c), Some(_)) = (&mut self.warp.clock, count) {
            c.now += 1;
        }
        self.cluster.notify();
        Ok(ExecStatus::Completed)
    }

    /// Resolves the barrier of the first lane in `lanes`; returns it with all lanes that name it.
    fn group_by_barrier(
        &mut self,
        bar: &BarRef,
        lanes: Mask,
    ) -> Result<(ResolvedBarrier, Mask), Fault> {
        let first = lanes.trailing_zeros() as usize;
        let at = self.resolve_bar(bar, first)?;
        let mut same = lanes;
        if !self.is_one_barrier(bar, lanes) {
            same = 0;
            for lane in lanes_of(lanes) {
                if self.resolve_bar(bar, lane)? == at {
                    same |= 1 << lane;
                }
            }
        }
        self.check_bar(at, same)?;
        Ok((at, same))
    }

    /// Whether all lanes name the same barrier.
    fn is_one_barrier(&mut self, bar: &BarRef, lanes: Mask) -> bool {
        self.is_uniform(bar.index, lanes) && bar.peer.is_none_or(|p| self.is_uniform(p, lanes))
    }

    /// Resolves the barrier and parity of a wait.
    fn resolve_wait(
        &mut self,
        bar: &BarRef,
        parity: Operand,
        lanes: Mask,
    ) -> Result<(ResolvedBarrier, u32), Fault> {
        let lane = lanes.trailing_zeros() as usize;
        let at = self.resolve_bar(bar, lane)?;
        self.check_bar(at, lanes)?;
        let parity = self.lane_value(parity, lane);
        let checked = if at.cta != self.warp.cta {
            Err(
                "waits for an mbarrier of another CTA; a wait must name one of its own CTA"
                    .to_owned(),
            )
        } else if parity > 1 {
            Err(format!("names parity {parity}; a parity is 0 or 1"))
        } else {
            Ok((at, parity))
        };
        checked.map_err(|text| self.lane_fault(lane, FaultKind::Barrier, text))
    }

    /// Acquires the completed phases of a barrier.
    fn acquire_phase(&mut self, at: ResolvedBarrier, lanes: Mask) {
        let Some(c) = &mut self.warp.clock else {
            return;
        };
        let b = &self.cluster.ctas[at.cta as usize].bars[at.slot as usize];
        if let Some(p) = &b.clocks {
            c.acquire(lanes, &p.completed_clock);
        }
        c.advance_engine(
            lanes,
            self.cluster.threads.barrier(at.cta, at.slot),
            b.phase,
        );
    }

    fn wait_passes(&self, at: ResolvedBarrier, parity: u32) -> bool {
        self.cluster.ctas[at.cta as usize].bars[at.slot as usize].passes(parity)
    }

    pub(crate) fn mbarrier_wait(&mut self, bar: &BarRef, parity: Operand) -> Exec {
        let lanes = self.warp.active;
        // Usually all lanes wait for one barrier and pass together.
        if self.is_one_barrier(bar, lanes) && self.is_uniform(parity, lanes) {
            let (at, parity) = self.resolve_wait(bar, parity, lanes)?;
            self.record_use(at, lanes);
            if !self.wait_passes(at, parity) {
                return self.block_on(Waiting::Mbarrier { bar: at, parity });
            }
            self.acquire_phase(at, lanes);
            return Ok(ExecStatus::Completed);
        }
        for lane in lanes_of(lanes & !self.warp.lanes_past_wait) {
            let (at, parity) = self.resolve_wait(bar, parity, 1 << lane)?;
            self.record_use(at, 1 << lane);
            if !self.wait_passes(at, parity) {
                return self.block_on(Waiting::Mbarrier { bar: at, parity });
            }
            self.acquire_phase(at, 1 << lane);
            self.warp.lanes_past_wait |= 1 << lane;
        }
        self.warp.lanes_past_wait = 0;
        Ok(ExecStatus::Completed)
    }

    /// Whether an operand is uniform in these lanes.
    fn is_uniform(&mut self, o: Operand, lanes: Mask) -> bool {
        let Operand::Reg(_) = o else { return true };
        let v = self.get::<u32>(o);
        let first = v[lanes.trailing_zeros() as usize];
        lanes_of(lanes).all(|l| v[l] == first)
    }

    pub(crate) fn mbarrier_test(&mut self, bar: &BarRef, parity: Operand) -> Exec {
        let lanes = self.warp.active;
        let (at, parity) = self.resolve_wait(bar, parity, lanes)?;
        self.record_use(at, lanes);
        if !self.wait_passes(at, parity) {
            self.polled = true;
            return Ok(ExecStatus::Blocked);
        }
        self.acquire_phase(at, lanes);
        Ok(ExecStatus::Completed)
    }
}
