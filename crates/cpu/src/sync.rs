//! Synchronization ops of one warp.
//!
//! An op that must wait sets [`WarpMachine::waiting`] and runs again when the condition may have
//! changed. The warp's status records the side effects of the first attempt (an arrival at a
//! barrier), so that they happen once. [`mbarrier`](crate::mbarrier) has the ops on mbarriers.

use crate::barrier::{BarrierArrival, BarrierClocks, Init, ThreadBarrier};
use crate::machine::{WarpMachine, lanes_of};
use crate::proxy_fences::FenceCoverage;
use crate::warp::{Status, Waiting, Warp};
use crate::warp_clock::WarpClock;
use warpline_ir::{
    BarrierReduction, Exec, ExecStatus, Fault, FaultKind, FenceKind, Machine, Mask, NamedId,
    Operand, RegId, SyncOp, WARP,
};

impl WarpMachine<'_, '_> {
    pub(crate) fn run_sync(&mut self, s: &SyncOp) -> Exec {
        match *s {
            SyncOp::Warp { mask } => self.warp_sync(mask),
            SyncOp::Init { bar, count } => self.mbarrier_init(&bar, count),
            SyncOp::Inval { bar } => self.mbarrier_inval(&bar),
            SyncOp::Arrive {
                bar,
                count,
                tx,
                drop: drop_out,
                ..
            } => self.mbarrier_arrive(&bar, Some(count), tx, drop_out),
            SyncOp::ExpectTx { bar, tx } => self.mbarrier_arrive(&bar, None, Some(tx), false),
            SyncOp::Wait { bar, parity, .. } => self.mbarrier_wait(&bar, parity),
            SyncOp::Test { bar, parity, .. } => self.mbarrier_test(&bar, parity),
            SyncOp::NamedSync { bar, threads } => {
                self.named_barrier(bar, threads, BarrierArrival::Sync)
            }
            SyncOp::NamedArrive { bar, threads } => {
                self.named_barrier(bar, threads, BarrierArrival::Arrive)
            }
            SyncOp::NamedReduce {
                bar,
                threads,
                reduction,
                pred,
                dst,
            } => self.named_reduce(bar, threads, reduction, pred, dst),
            SyncOp::Cta => self.cta_sync(),
            SyncOp::ClusterArrive { release } => self.cluster_arrive(release),
            SyncOp::ClusterWait => self.cluster_wait(),
            SyncOp::Fence(f) => self.run_fence(f),
            SyncOp::BulkCommit => self.bulk_commit(),
            SyncOp::BulkWait { pending, read } => self.bulk_wait(pending, read),
            SyncOp::CopyCommit => self.copy_commit(),
            SyncOp::CopyWait { pending } => self.copy_wait(pending),
            SyncOp::CopyArrive { bar, noinc } => self.copy_arrive(&bar, noinc),
            SyncOp::WgmmaFence => self.wgmma_fence(),
            SyncOp::WgmmaCommit => self.wgmma_commit(),
            SyncOp::WgmmaWait { pending } => self.wgmma_wait(pending),
            SyncOp::SetMaxRegs { count, grow } => self.set_registers(count, grow),
            // The instruction loop ends the warp.
            SyncOp::Exit => self.require_whole_warp().map(|()| ExecStatus::Completed),
        }
    }

    pub(crate) fn block_on(&mut self, on: Waiting) -> Exec {
        self.waiting = Some(on);
        Ok(ExecStatus::Blocked)
    }

    /// Returns the wait of the previous attempt of this op.
    fn last_wait(&self) -> Option<Waiting> {
        match self.warp.status {
            Status::Waiting(w) => Some(w),
            _ => None,
        }
    }

    fn require_whole_warp(&self) -> Result<(), Fault> {
        match self.warp.active {
            Mask::MAX => Ok(()),
            some => Err(Fault::new(
                FaultKind::Convergence,
                format!("requires the whole warp, but only lanes {some:#010x} reach it"),
            )),
        }
    }

    fn warp_sync(&mut self, mask: Operand) -> Exec {
        let active = self.warp.active;
        let named = self.get::<u32>(mask);
        for lane in lanes_of(active) {
            let missing = named[lane] & !active;
            if missing != 0 {
                return Err(self.lane_fault(
                    lane,
                    FaultKind::Convergence,
                    format!("names lanes {missing:#010x}, which do not reach this op together with this lane"),
                ));
            }
        }
        if let Some(c) = &mut self.warp.clock {
            let mut remaining = active;
            while remaining != 0 {
                let synced = named[remaining.trailing_zeros() as usize];
                c.sync_lanes(synced);
                remaining &= !synced;
            }
        }
        Ok(ExecStatus::Completed)
    }

    fn named_barrier(&mut self, bar: NamedId, threads: u32, arrival: BarrierArrival) -> Exec {
        self.require_whole_warp()?;
        let named = bar.0;
        let last_wait = self.last_wait();
        let cta_threads = self.env.kernel.threads();
        let name = &self.env.kernel.named(bar).name;
        let m = &mut self.cluster.ctas[self.warp.cta as usize].named[bar.index()];
        if let Some(Waiting::Named { phase, .. }) = last_wait {
            if m.phase == phase {
                return self.block_on(Waiting::Named { named, phase });
            }
            acquire_barrier(self.warp, m);
            return Ok(ExecStatus::Completed);
        }
        let phase = m.phase;
        let done = match threads {
            t if t > cta_threads => Err(Fault::new(
                FaultKind::Barrier,
                format!("names {t} threads, but the CTA has {cta_threads}"),
            )),
            t => arrive_at_barrier(self.warp, m, t, arrival),
        };
        let done = done.map_err(|f| Fault::new(f.kind, format!("{} ({name})", f.text)))?;
        let wait = arrival != BarrierArrival::Arrive;
        self.finish_barrier(done, wait, Waiting::Named { named, phase })
    }

    /// Runs `barrier.red`: synchronizes and reduces a predicate over the threads.
    fn named_reduce(
        &mut self,
        bar: NamedId,
        threads: u32,
        reduction: BarrierReduction,
        pred: Operand,
        dst: RegId,
    ) -> Exec {
        let warp_votes = self.pred(pred).count_ones();
        let cta = self.warp.cta as usize;
        let phase = match self.last_wait() {
            Some(Waiting::Named { phase, .. }) => phase,
            _ => self.cluster.ctas[cta].named[bar.index()].phase,
        };
        if self.named_barrier(
            bar,
            threads,
            BarrierArrival::Reduce {
                reduction,
                votes: warp_votes,
            },
        )? == ExecStatus::Blocked
        {
            return Ok(ExecStatus::Blocked);
        }
        let votes = self.cluster.ctas[cta].named[bar.index()].take_votes(phase);
        match reduction {
            BarrierReduction::Count => self.set(dst, &[votes; WARP]),
            BarrierReduction::All => self.set_pred(dst, lane_mask(votes == threads)),
            BarrierReduction::Any => self.set_pred(dst, lane_mask(votes != 0)),
        }
        Ok(ExecStatus::Completed)
    }

    fn cta_sync(&mut self) -> Exec {
        self.require_whole_warp()?;
        let last_wait = self.last_wait();
        let cta = &mut self.cluster.ctas[self.warp.cta as usize];
        let threads = 32 * cta.live;
        if let Some(Waiting::Cta { phase }) = last_wait {
            if cta.barrier.phase == phase {
                return self.block_on(Waiting::Cta { phase });
            }
            acquire_barrier(self.warp, &cta.barrier);
            return Ok(ExecStatus::Completed);
        }
        let phase = cta.barrier.phase;
        let done = arrive_at_barrier(self.warp, &mut cta.barrier, threads, BarrierArrival::Sync)?;
        self.finish_barrier(done, true, Waiting::Cta { phase })
    }

    /// Blocks after an arrival, or passes the barrier.
    fn finish_barrier(&mut self, done: bool, wait: bool, on: Waiting) -> Exec {
        self.cluster.progress += 1;
        self.cluster.notified |= done;
        if !wait {
            return Ok(ExecStatus::Completed);
        }
        if !done {
            return self.block_on(on);
        }
        let cta = &self.cluster.ctas[self.warp.cta as usize];
        let m = match on {
            Waiting::Named { named, .. } => &cta.named[named as usize],
            _ => &cta.barrier,
        };
        acquire_barrier(self.warp, m);
        Ok(ExecStatus::Completed)
    }

    fn cluster_arrive(&mut self, release: bool) -> Exec {
        self.require_whole_warp()?;
        if self.warp.cluster_arrival.is_some() {
            return Err(Fault::new(
                FaultKind::Barrier,
                "arrives at the cluster barrier twice without a wait in between",
            ));
        }
        let live: u32 = self.cluster.ctas.iter().map(|c| c.live).sum();
        let m = &mut self.cluster.barrier;
        self.warp.cluster_arrival = Some(m.phase);
        if let (true, Some(p), Some(c)) = (release, &mut m.clocks, &mut self.warp.clock) {
            c.release(Mask::MAX, &mut p.arrived_clock);
        }
        // A relaxed arrival publishes the inits too, by `fence.mbarrier_init`.
        let phase = m.phase;
        let bars = self.cluster.ctas.iter_mut().flat_map(|c| &mut c.bars);
        let inits = bars.filter_map(|b| b.init.as_mut()).filter(|i| i.fenced);
        for i in inits.filter(|i| i.epoch.thread == self.warp.id) {
            i.published_in.get_or_insert(phase);
        }
        self.cluster
            .barrier
            .arrive(32 * live, BarrierArrival::Sync)?;
        self.cluster.notify();
        Ok(ExecStatus::Completed)
    }

    fn cluster_wait(&mut self) -> Exec {
        self.require_whole_warp()?;
        let Some(phase) = self.warp.cluster_arrival else {
            return Err(Fault::new(
                FaultKind::Barrier,
                "waits at the cluster barrier without an arrival",
            ));
        };
        if self.cluster.barrier.phase == phase {
            return self.block_on(Waiting::Cluster { phase });
        }
        self.warp.cluster_arrival = None;
        self.warp.cluster_phases_passed = phase + 1;
        acquire_barrier(self.warp, &self.cluster.barrier);
        Ok(ExecStatus::Completed)
    }

    fn run_fence(&mut self, f: FenceKind) -> Exec {
        let lanes = self.warp.active;
        match f {
            f if f.is_proxy_shared() => {
                // A fence of `.shared::cta` does not cover the memory of peers.
                let cluster = f != FenceKind::ProxyAsyncShared;
                self.proxy_fence(match cluster {
                    true => FenceCoverage::Cluster,
                    false => FenceCoverage::Cta,
                });
                let warps = self.cluster.threads.warps_per_cta;
                let streams = match cluster {
                    true => 0..self.cluster.threads.all_warps(),
                    false => self.warp.cta * warps..(self.warp.cta + 1) * warps,
                };
                if let Some(c) = &mut self.warp.clock {
                    c.fence_streams(lanes, streams);
                }
            }
            FenceKind::MbarrierInit => {
                let is_own =
                    |i: &Init| i.epoch.thread == self.warp.id && i.epoch.lanes & lanes != 0;
                let bars = self.cluster.ctas.iter_mut().flat_map(|c| &mut c.bars);
                for i in bars.filter_map(|b| b.init.as_mut()).filter(|i| is_own(i)) {
                    i.fenced = true;
                }
            }
            FenceKind::ProxyAsyncRelease => self.proxy_fence(FenceCoverage::Release),
            FenceKind::ProxyAsyncAcquire => {
                if let (Some(s), Some(c)) = (&mut self.cluster.shadow, &self.warp.clock) {
                    s.fence_acquire(lanes, c);
                }
            }
            f => f
                .order()
                .into_iter()
                .for_each(|order| self.fence_order(order, f.is_shared_only())),
        }
        Ok(ExecStatus::Completed)
    }

    /// Records a proxy fence of the active lanes.
    fn proxy_fence(&mut self, covers: FenceCoverage) {
        if let (Some(s), Some(c)) = (&mut self.cluster.shadow, &self.warp.clock) {
            s.fence(c, self.warp.active, covers);
        }
    }

    fn bulk_commit(&mut self) -> Exec {
        for lane in lanes_of(self.warp.active) {
            self.cluster.engines.groups[self.warp.id as usize].commit(lane as u32);
        }
        Ok(ExecStatus::Completed)
    }

    fn bulk_wait(&mut self, pending: u32, read: bool) -> Exec {
        let id = self.warp.id;
        let groups = &mut self.cluster.engines.groups[id as usize];
        for lane in lanes_of(self.warp.active) {
            let lane = lane as u32;
            if !groups.wait_passes(lane, pending, read) {
                return self.block_on(Waiting::Bulk {
                    lane,
                    pending,
                    read,
                });
            }
        }
        for lane in lanes_of(self.warp.active) {
            let end = groups.end(lane as u32, pending);
            if let (Some(c), 1..) = (&mut self.warp.clock, end) {
                c.advance_own_copies(self.cluster.threads.bulk_reads(id), 1 << lane, end);
                if !read {
                    c.advance_own_copies(self.cluster.threads.bulk_writes(id), 1 << lane, end);
                }
            }
            groups.retire(lane as u32, pending);
        }
        Ok(ExecStatus::Completed)
    }

    fn wgmma_fence(&mut self) -> Exec {
        self.require_whole_warp()?;
        if let Some(w) = &mut self.warp.wgmma {
            w.fences += 1;
        }
        Ok(ExecStatus::Completed)
    }

    fn wgmma_commit(&mut self) -> Exec {
        self.require_whole_warp()?;
        if let Some(w) = &mut self.warp.wgmma {
            w.groups.push(w.issued);
        }
        Ok(ExecStatus::Completed)
    }

    fn wgmma_wait(&mut self, pending: u32) -> Exec {
        self.require_whole_warp()?;
        let Some(w) = &mut self.warp.wgmma else {
            return Ok(ExecStatus::Completed);
        };
        let covered = w.groups.len().saturating_sub(pending as usize);
        let Some(&done) = w.groups[..covered].last() else {
            return Ok(ExecStatus::Completed);
        };
        if self.cluster.engines.wgmma_queue(self.warp).done < done {
            return self.block_on(Waiting::Wgmma { done });
        }
        if let Some(w) = &mut self.warp.wgmma {
            w.waited = w.waited.max(done);
            w.groups.drain(..covered);
        }
        if let Some(c) = &mut self.warp.clock {
            c.advance_engine(Mask::MAX, self.cluster.threads.wgmma(self.warp.id), done);
        }
        Ok(ExecStatus::Completed)
    }

    fn set_registers(&mut self, count: u32, grow: bool) -> Exec {
        self.require_whole_warp()?;
        let invalid = |text: String| Err(Fault::new(FaultKind::Registers, text));
        let max = self.env.target.registers_per_thread.next_multiple_of(8);
        if !(24..=max).contains(&count) || !count.is_multiple_of(8) {
            return invalid(format!(
                "the register count must be a multiple of 8 between 24 and {max}, not {count}"
            ));
        }
        let budget = self.warp.budget;
        let cta = &mut self.cluster.ctas[self.warp.cta as usize];
        if grow {
            let Some(additional) = count.checked_sub(budget) else {
                return invalid(format!(
                    "requests an increase to {count} registers per thread, but the warp has {budget}"
                ));
            };
            let wanted = 32 * additional;
            if wanted > cta.free_registers {
                return self.block_on(Waiting::Registers { count, wanted });
            }
            cta.free_registers -= wanted;
        } else {
            let Some(released) = budget.checked_sub(count) else {
                return invalid(format!(
                    "requests a decrease to {count} registers per thread, but the warp has {budget}"
                ));
            };
            cta.free_registers += 32 * released;
            self.cluster.notify();
        }
        self.warp.budget = count;
        Ok(ExecStatus::Completed)
    }
}

/// Arrives at a barrier; returns whether the phase completes.
fn arrive_at_barrier(
    warp: &mut Warp,
    m: &mut ThreadBarrier,
    threads: u32,
    arrival: BarrierArrival,
) -> Result<bool, Fault> {
    if let (Some(p), Some(c)) = (&mut m.clocks, &mut warp.clock) {
        c.release(Mask::MAX, &mut p.arrived_clock);
    }
    m.arrive(threads, arrival)
}

/// Returns the mask of all lanes, or of none.
fn lane_mask(all: bool) -> Mask {
    if all { Mask::MAX } else { 0 }
}

/// Acquires a completed phase of a barrier.
fn acquire_barrier(warp: &mut Warp, m: &ThreadBarrier) {
    if let (Some(p), Some(c)) = (&m.clocks, &mut warp.clock) {
        let p: &BarrierClocks = p;
        let c: &mut WarpClock = c;
        c.acquire(Mask::MAX, &p.completed_clock);
        c.sync();
    }
}
