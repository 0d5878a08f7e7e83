//! mbarriers, as the lanes of one warp use them.

use crate::barrier::Init;
use crate::clock::Moment;
use crate::machine::{Lockstep, lanes_of};
use crate::warp::Waiting;
use warpline_ir::{BarAt, BarRef, Exec, Fault, FaultKind, Machine, Mask, Operand, Step};

impl Lockstep<'_, '_> {
    pub(crate) fn init(&mut self, bar: &BarRef, count: u32) -> Exec {
        for lane in lanes_of(self.warp.active) {
            let at = self.resolve_bar(bar, lane)?;
            self.check_here(at.cta)?;
            let clock = self.warp.clock.as_ref().map_or(0, |c| c.now);
            let init = Init {
                moment: Moment {
                    thread: self.warp.id,
                    lane: lane as u8,
                    clock,
                },
                site: self.site,
                fenced: false,
                told: None,
            };
            let made = self.cluster.ctas[at.cta as usize].bars[at.slot as usize].init(count, init);
            self.named_fault(made, at, lane)?;
        }
        self.cluster.progress += 1;
        Ok(Step::Next)
    }

    pub(crate) fn inval(&mut self, bar: &BarRef) -> Exec {
        for lane in lanes_of(self.warp.active) {
            let at = self.live_bar(bar, lane)?;
            let ended = self.cluster.ctas[at.cta as usize].bars[at.slot as usize].end();
            self.named_fault(ended, at, lane)?;
        }
        Ok(Step::Next)
    }

    /// Adds the barrier's name to a fault.
    fn named_fault<T>(&mut self, r: Result<T, Fault>, at: BarAt, lane: usize) -> Result<T, Fault> {
        r.map_err(|f| {
            let (name, index) = self.env.barrier_name(at);
            self.fault_in(lane, f.kind, format!("{} ({name}[{index}])", f.text))
        })
    }

    /// A barrier that this lane may use.
    pub(crate) fn live_bar(&mut self, bar: &BarRef, lane: usize) -> Result<BarAt, Fault> {
        let at = self.resolve_bar(bar, lane)?;
        self.check_bar(at, lane)?;
        Ok(at)
    }

    /// Refuses a barrier that is not alive, or whose init this lane cannot know of.
    pub(crate) fn check_bar(&mut self, at: BarAt, lane: usize) -> Result<(), Fault> {
        self.check_here(at.cta)?;
        let b = &self.cluster.ctas[at.cta as usize].bars[at.slot as usize];
        let live = b.check_live();
        let init = b.init;
        self.named_fault(live, at, lane)?;
        let (Some(init), Some(clock)) = (init, &self.warp.clock) else {
            return Ok(());
        };
        let own = init.moment.thread == self.warp.id && usize::from(init.moment.lane) == lane;
        let why = if own {
            return Ok(());
        } else if !init.fenced {
            "the lane that made it has not run fence.mbarrier_init"
        } else if !clock.knows(lane as u8, &init.moment)
            && init
                .told
                .is_none_or(|meeting| meeting >= self.warp.left_cluster)
        {
            "no barrier of threads orders its init before this use"
        } else {
            return Ok(());
        };
        self.other = Some(self.party(init.moment.thread, init.site));
        let unseen = Fault::new(
            FaultKind::Barrier,
            format!("uses an mbarrier whose init it may not see: {why}"),
        );
        self.named_fault(Err(unseen), at, lane)
    }

    /// Expects bytes and arrives, each active lane by itself.
    pub(crate) fn arrive(
        &mut self,
        bar: &BarRef,
        count: Option<Operand>,
        tx: Option<Operand>,
        leave: bool,
    ) -> Exec {
        let lanes = self.warp.active;
        // All lanes of one instruction are released together.
        let mut told = None;
        for lane in lanes_of(lanes) {
            let at = self.live_bar(bar, lane)?;
            let tx = tx.map_or(0, |o| self.one(o, lane));
            let count = count.map(|o| self.one(o, lane));
            let b = &mut self.cluster.ctas[at.cta as usize].bars[at.slot as usize];
            if let (Some(p), Some(clock), Some(_)) = (&mut b.passing, &self.warp.clock, count) {
                if told != Some(at) {
                    clock.tell(lanes, &mut p.came);
                }
                told = Some(at);
            }
            let done = b
                .expect(tx)
                .and_then(|()| count.map_or(Ok(false), |n| b.arrive(n, leave)));
            self.named_fault(done, at, lane)?;
        }
        if let (Some(c), Some(_)) = (&mut self.warp.clock, count) {
            c.now += 1;
        }
        self.cluster.stir();
        Ok(Step::Next)
    }

    /// A barrier of this CTA, to be waited for, and a parity.
    fn awaited(
        &mut self,
        bar: &BarRef,
        parity: Operand,
        lane: usize,
    ) -> Result<(BarAt, u32), Fault> {
        let at = self.live_bar(bar, lane)?;
        let parity = self.one(parity, lane);
        let wrong = if at.cta != self.warp.cta {
            Err("a thread waits for mbarriers of its own CTA only".to_owned())
        } else if parity > 1 {
            Err(format!("a parity is 0 or 1, not {parity}"))
        } else {
            Ok((at, parity))
        };
        wrong.map_err(|text| self.fault_in(lane, FaultKind::Barrier, text))
    }

    /// Takes what the complete phases of a barrier pass on.
    fn pass_bar(&mut self, at: BarAt, lanes: Mask) {
        let Some(c) = &mut self.warp.clock else {
            return;
        };
        let b = &self.cluster.ctas[at.cta as usize].bars[at.slot as usize];
        if let Some(p) = &b.passing {
            c.acquire(lanes, &p.complete);
        }
        c.learn(
            lanes,
            self.cluster.threads.barrier(at.cta, at.slot),
            b.phase,
        );
        if lanes == Mask::MAX {
            c.sync();
        }
    }

    fn is_past(&self, at: BarAt, parity: u32) -> bool {
        self.cluster.ctas[at.cta as usize].bars[at.slot as usize].passes(parity)
    }

    pub(crate) fn wait(&mut self, bar: &BarRef, parity: Operand) -> Exec {
        let lanes = self.warp.active;
        // The usual case: the lanes wait for one barrier, and pass together.
        let first = lanes.trailing_zeros() as usize;
        let uniform = self.uniform(bar.index, lanes)
            && self.uniform(parity, lanes)
            && bar.peer.is_none_or(|p| self.uniform(p, lanes));
        if uniform {
            let (at, parity) = self.awaited(bar, parity, first)?;
            if !self.is_past(at, parity) {
                return self.block(Waiting::Mbarrier { bar: at, parity });
            }
            self.pass_bar(at, lanes);
            return Ok(Step::Next);
        }
        for lane in lanes_of(lanes & !self.warp.passed) {
            let (at, parity) = self.awaited(bar, parity, lane)?;
            if !self.is_past(at, parity) {
                return self.block(Waiting::Mbarrier { bar: at, parity });
            }
            self.pass_bar(at, 1 << lane);
            self.warp.passed |= 1 << lane;
        }
        self.warp.passed = 0;
        if lanes == Mask::MAX {
            self.sync_clock();
        }
        Ok(Step::Next)
    }

    /// Is an operand the same in all of these lanes?
    fn uniform(&mut self, o: Operand, lanes: Mask) -> bool {
        let Operand::Reg(_) = o else { return true };
        let v = self.get::<u32>(o);
        let first = v[lanes.trailing_zeros() as usize];
        lanes_of(lanes).all(|l| v[l] == first)
    }

    pub(crate) fn test(&mut self, bar: &BarRef, parity: Operand) -> Exec {
        let lanes = self.warp.active;
        let (at, parity) = self.awaited(bar, parity, lanes.trailing_zeros() as usize)?;
        if !self.is_past(at, parity) {
            self.polled = true;
            return Ok(Step::Blocked);
        }
        self.pass_bar(at, lanes);
        Ok(Step::Next)
    }
}
