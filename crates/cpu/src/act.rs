//! Acts of synchronisation, as one warp performs them.
//!
//! An act that must wait leaves word in [`Lockstep::waiting`] and is tried
//! again when that may have changed; what it did on the way in (an arrival at
//! a meeting) is remembered by the warp's status, so that it is done once.
//! What lanes do with mbarriers is in [`mbarrier`](crate::mbarrier).

use crate::barrier::{Coming, Init, Meeting, Passing};
use crate::machine::{Lockstep, lanes_of};
use crate::proxy::Covers;
use crate::warp::{Status, Waiting, Warp};
use crate::warp_clock::WarpClock;
use warpline_ir::{
    Exec, Fault, FaultKind, Fence, Machine, Mask, NamedId, Operand, RegId, Step, Sync, Tally, WARP,
};

impl Lockstep<'_, '_> {
    pub(crate) fn act(&mut self, s: &Sync) -> Exec {
        match *s {
            Sync::Warp { mask } => self.warp_sync(mask),
            Sync::Init { bar, count } => self.init(&bar, count),
            Sync::Inval { bar } => self.inval(&bar),
            Sync::Arrive {
                bar,
                count,
                tx,
                leave,
                ..
            } => self.arrive(&bar, Some(count), tx, leave),
            Sync::ExpectTx { bar, tx } => self.arrive(&bar, None, Some(tx), false),
            Sync::Wait { bar, parity, .. } => self.wait(&bar, parity),
            Sync::Test { bar, parity, .. } => self.test(&bar, parity),
            Sync::NamedSync { bar, threads } => self.named(bar, threads, Coming::Waits),
            Sync::NamedArrive { bar, threads } => self.named(bar, threads, Coming::GoesOn),
            Sync::NamedTally {
                bar,
                threads,
                tally,
                pred,
                dst,
            } => self.named_tally(bar, threads, tally, pred, dst),
            Sync::Cta => self.cta_sync(),
            Sync::ClusterArrive { release } => self.cluster_arrive(release),
            Sync::ClusterWait => self.cluster_wait(),
            Sync::Fence(f) => self.fence(f),
            Sync::BulkCommit => self.bulk_commit(),
            Sync::BulkWait { pending, read } => self.bulk_wait(pending, read),
            Sync::CopyCommit => self.copy_commit(),
            Sync::CopyWait { pending } => self.copy_wait(pending),
            Sync::CopyArrive { bar, counted } => self.copy_arrive(&bar, counted),
            Sync::WgmmaFence => self.wgmma_fence(),
            Sync::WgmmaCommit => self.wgmma_commit(),
            Sync::WgmmaWait { pending } => self.wgmma_wait(pending),
            Sync::SetMaxRegs { count, grow } => self.set_registers(count, grow),
            // The inner loop ends the warp.
            Sync::Exit => self.whole_warp().map(|()| Step::Next),
        }
    }

    pub(crate) fn block(&mut self, on: Waiting) -> Exec {
        self.waiting = Some(on);
        Ok(Step::Blocked)
    }

    /// What the warp waited for when this op was last tried.
    fn waited(&self) -> Option<Waiting> {
        match self.warp.status {
            Status::Waiting(w) => Some(w),
            _ => None,
        }
    }

    fn whole_warp(&self) -> Result<(), Fault> {
        match self.warp.active {
            Mask::MAX => Ok(()),
            some => Err(Fault::new(
                FaultKind::Convergence,
                format!("is an act of whole warps, and only lanes {some:#010x} reach it"),
            )),
        }
    }

    fn warp_sync(&mut self, mask: Operand) -> Exec {
        let active = self.warp.active;
        let named = self.get::<u32>(mask);
        for lane in lanes_of(active) {
            let missing = named[lane] & !active;
            if missing != 0 {
                return Err(self.fault_in(
                    lane,
                    FaultKind::Convergence,
                    format!("waits for lanes {missing:#010x}, which do not reach this op with it"),
                ));
            }
        }
        if let Some(c) = &mut self.warp.clock {
            let mut left = active;
            while left != 0 {
                let met = named[left.trailing_zeros() as usize];
                c.sync_lanes(met);
                left &= !met;
            }
        }
        Ok(Step::Next)
    }

    fn named(&mut self, bar: NamedId, threads: u32, coming: Coming) -> Exec {
        self.whole_warp()?;
        let named = bar.0;
        let waited = self.waited();
        let all = self.env.kernel.threads();
        let name = &self.env.kernel.named(bar).name;
        let m = &mut self.cluster.ctas[self.warp.cta as usize].named[bar.index()];
        if let Some(Waiting::Named { meeting, .. }) = waited {
            if m.over == meeting {
                return self.block(Waiting::Named { named, meeting });
            }
            leave_meeting(self.warp, m);
            return Ok(Step::Next);
        }
        let meeting = m.over;
        let done = match threads {
            t if t > all => Err(Fault::new(
                FaultKind::Barrier,
                format!("meets {t} threads in a CTA of {all}"),
            )),
            t => come_to_meeting(self.warp, m, t, coming),
        };
        let done = done.map_err(|f| Fault::new(f.kind, format!("{} ({name})", f.text)))?;
        let wait = coming != Coming::GoesOn;
        self.finish_meeting(done, wait, Waiting::Named { named, meeting })
    }

    /// Meets others, counts where a predicate holds, and learns the sum.
    fn named_tally(
        &mut self,
        bar: NamedId,
        threads: u32,
        tally: Tally,
        pred: Operand,
        dst: RegId,
    ) -> Exec {
        let yes = self.pred(pred).count_ones();
        let cta = self.warp.cta as usize;
        let meeting = match self.waited() {
            Some(Waiting::Named { meeting, .. }) => meeting,
            _ => self.cluster.ctas[cta].named[bar.index()].over,
        };
        if self.named(bar, threads, Coming::Counts { tally, yes })? == Step::Blocked {
            return Ok(Step::Blocked);
        }
        let counted = self.cluster.ctas[cta].named[bar.index()].take_count(meeting);
        match tally {
            Tally::Count => self.set(dst, &[counted; WARP]),
            Tally::All => self.set_pred(dst, full(counted == threads)),
            Tally::Any => self.set_pred(dst, full(counted != 0)),
        }
        Ok(Step::Next)
    }

    fn cta_sync(&mut self) -> Exec {
        self.whole_warp()?;
        let waited = self.waited();
        let cta = &mut self.cluster.ctas[self.warp.cta as usize];
        let threads = 32 * cta.live;
        if let Some(Waiting::Cta { meeting }) = waited {
            if cta.meeting.over == meeting {
                return self.block(Waiting::Cta { meeting });
            }
            leave_meeting(self.warp, &cta.meeting);
            return Ok(Step::Next);
        }
        let meeting = cta.meeting.over;
        let done = come_to_meeting(self.warp, &mut cta.meeting, threads, Coming::Waits)?;
        self.finish_meeting(done, true, Waiting::Cta { meeting })
    }

    /// Goes on from a meeting that is over or need not be waited for.
    fn finish_meeting(&mut self, done: bool, wait: bool, on: Waiting) -> Exec {
        self.cluster.progress += 1;
        self.cluster.stirred |= done;
        if !wait {
            return Ok(Step::Next);
        }
        if !done {
            return self.block(on);
        }
        let cta = &self.cluster.ctas[self.warp.cta as usize];
        let m = match on {
            Waiting::Named { named, .. } => &cta.named[named as usize],
            _ => &cta.meeting,
        };
        leave_meeting(self.warp, m);
        Ok(Step::Next)
    }

    fn cluster_arrive(&mut self, release: bool) -> Exec {
        self.whole_warp()?;
        if self.warp.at_cluster.is_some() {
            return Err(Fault::new(
                FaultKind::Barrier,
                "arrives at the cluster's barrier twice without a wait between",
            ));
        }
        let live: u32 = self.cluster.ctas.iter().map(|c| c.live).sum();
        let m = &mut self.cluster.meeting;
        self.warp.at_cluster = Some(m.over);
        if let (true, Some(p), Some(c)) = (release, &mut m.passing, &mut self.warp.clock) {
            c.release(Mask::MAX, &mut p.came);
        }
        // Also where it releases nothing: that is what `fence.mbarrier_init` is for.
        let meeting = m.over;
        let bars = self.cluster.ctas.iter_mut().flat_map(|c| &mut c.bars);
        let inits = bars.filter_map(|b| b.init.as_mut()).filter(|i| i.fenced);
        for i in inits.filter(|i| i.moment.thread == self.warp.id) {
            i.told.get_or_insert(meeting);
        }
        self.cluster.meeting.arrive(32 * live, Coming::Waits)?;
        self.cluster.stir();
        Ok(Step::Next)
    }

    fn cluster_wait(&mut self) -> Exec {
        self.whole_warp()?;
        let Some(meeting) = self.warp.at_cluster else {
            return Err(Fault::new(
                FaultKind::Barrier,
                "waits at the cluster's barrier without having arrived",
            ));
        };
        if self.cluster.meeting.over == meeting {
            return self.block(Waiting::Cluster { meeting });
        }
        self.warp.at_cluster = None;
        self.warp.left_cluster = meeting + 1;
        leave_meeting(self.warp, &self.cluster.meeting);
        Ok(Step::Next)
    }

    fn fence(&mut self, f: Fence) -> Exec {
        let lanes = self.warp.active;
        match f {
            f if f.is_proxy_shared() => {
                // One of the CTA's own memory says nothing of what a peer's holds.
                let cluster = f != Fence::ProxyAsyncShared;
                self.proxy_fence(match cluster {
                    true => Covers::Cluster,
                    false => Covers::Cta,
                });
                let warps = self.cluster.threads.warps;
                let streams = match cluster {
                    true => 0..self.cluster.threads.all_warps(),
                    false => self.warp.cta * warps..(self.warp.cta + 1) * warps,
                };
                if let Some(c) = &mut self.warp.clock {
                    c.fence_streams(lanes, streams);
                }
            }
            Fence::MbarrierInit => {
                let own = |i: &Init| i.moment.thread == self.warp.id && i.moment.lanes & lanes != 0;
                let bars = self.cluster.ctas.iter_mut().flat_map(|c| &mut c.bars);
                for i in bars.filter_map(|b| b.init.as_mut()).filter(|i| own(i)) {
                    i.fenced = true;
                }
            }
            Fence::ProxyAsyncRelease => self.proxy_fence(Covers::Release),
            Fence::ProxyAsyncAcquire => {
                if let (Some(s), Some(c)) = (&mut self.cluster.shadow, &self.warp.clock) {
                    s.fence_acquire(lanes, c);
                }
            }
            f => f
                .order()
                .into_iter()
                .for_each(|order| self.fence_order(order, f.is_shared_only())),
        }
        Ok(Step::Next)
    }

    /// A proxy fence of the active lanes.
    fn proxy_fence(&mut self, covers: Covers) {
        if let (Some(s), Some(c)) = (&mut self.cluster.shadow, &self.warp.clock) {
            s.fence(c, self.warp.active, covers);
        }
    }

    fn bulk_commit(&mut self) -> Exec {
        for lane in lanes_of(self.warp.active) {
            self.cluster.engines.groups[self.warp.id as usize].commit(lane as u32);
        }
        Ok(Step::Next)
    }

    fn bulk_wait(&mut self, pending: u32, read: bool) -> Exec {
        let id = self.warp.id;
        let groups = &mut self.cluster.engines.groups[id as usize];
        for lane in lanes_of(self.warp.active) {
            let lane = lane as u32;
            if !groups.passed(lane, pending, read) {
                return self.block(Waiting::Bulk {
                    lane,
                    pending,
                    read,
                });
            }
        }
        for lane in lanes_of(self.warp.active) {
            let past = groups.past(lane as u32, pending);
            if let (Some(c), 1..) = (&mut self.warp.clock, past) {
                c.learn_own(self.cluster.threads.bulk(id), 1 << lane, past);
                if !read {
                    c.learn_own(self.cluster.threads.bulk_writes(id), 1 << lane, past);
                }
            }
            groups.forget(lane as u32, pending);
        }
        Ok(Step::Next)
    }

    fn wgmma_fence(&mut self) -> Exec {
        self.whole_warp()?;
        if let Some(w) = &mut self.warp.wgmma {
            w.fences += 1;
        }
        Ok(Step::Next)
    }

    fn wgmma_commit(&mut self) -> Exec {
        self.whole_warp()?;
        if let Some(w) = &mut self.warp.wgmma {
            w.groups.push(w.issued);
        }
        Ok(Step::Next)
    }

    fn wgmma_wait(&mut self, pending: u32) -> Exec {
        self.whole_warp()?;
        let Some(w) = &mut self.warp.wgmma else {
            return Ok(Step::Next);
        };
        let covered = w.groups.len().saturating_sub(pending as usize);
        let Some(&done) = w.groups[..covered].last() else {
            return Ok(Step::Next);
        };
        if self.cluster.engines.products_of(self.warp).done < done {
            return self.block(Waiting::Wgmma { done });
        }
        if let Some(w) = &mut self.warp.wgmma {
            w.waited = w.waited.max(done);
            w.groups.drain(..covered);
        }
        if let Some(c) = &mut self.warp.clock {
            c.learn(Mask::MAX, self.cluster.threads.wgmma(self.warp.id), done);
        }
        Ok(Step::Next)
    }

    fn set_registers(&mut self, count: u32, grow: bool) -> Exec {
        self.whole_warp()?;
        let refuse = |text: String| Err(Fault::new(FaultKind::Registers, text));
        let most = self.env.target.registers_per_thread.next_multiple_of(8);
        if !(24..=most).contains(&count) || !count.is_multiple_of(8) {
            return refuse(format!(
                "a warpgroup has a multiple of 8 registers per thread between 24 and {most}, not {count}"
            ));
        }
        let has = self.warp.budget;
        let cta = &mut self.cluster.ctas[self.warp.cta as usize];
        if grow {
            let Some(more) = count.checked_sub(has) else {
                return refuse(format!("grows to {count} registers per thread from {has}"));
            };
            let wanted = 32 * more;
            if wanted > cta.free_registers {
                return self.block(Waiting::Registers { count, wanted });
            }
            cta.free_registers -= wanted;
        } else {
            let Some(less) = has.checked_sub(count) else {
                return refuse(format!(
                    "shrinks to {count} registers per thread from {has}"
                ));
            };
            cta.free_registers += 32 * less;
            self.cluster.stir();
        }
        self.warp.budget = count;
        Ok(Step::Next)
    }
}

/// A warp comes to a meeting; says whether all are there.
fn come_to_meeting(
    warp: &mut Warp,
    m: &mut Meeting,
    threads: u32,
    coming: Coming,
) -> Result<bool, Fault> {
    if let (Some(p), Some(c)) = (&mut m.passing, &mut warp.clock) {
        c.release(Mask::MAX, &mut p.came);
    }
    m.arrive(threads, coming)
}

/// All lanes, or none.
fn full(yes: bool) -> Mask {
    if yes { Mask::MAX } else { 0 }
}

/// A warp goes on from a meeting that is over.
fn leave_meeting(warp: &mut Warp, m: &Meeting) {
    if let (Some(p), Some(c)) = (&m.passing, &mut warp.clock) {
        let p: &Passing = p;
        let c: &mut WarpClock = c;
        c.acquire(Mask::MAX, &p.complete);
        c.sync();
    }
}
