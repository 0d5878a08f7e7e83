//! mbarriers, as the lanes of one warp use them.

use crate::barrier::Init;
use crate::clock::Moment;
use crate::last::Last;
use crate::machine::{Lockstep, lanes_of};
use crate::warp::Waiting;
use warpline_ir::{BarAt, BarRef, Exec, Fault, FaultKind, Machine, Mask, Operand, Step};

impl Lockstep<'_, '_> {
    pub(crate) fn init(&mut self, bar: &BarRef, count: u32) -> Exec {
        for lane in lanes_of(self.warp.active) {
            let at = self.resolve_bar(bar, lane)?;
            self.check_here(at.cta)?;
            // One that was made invalid before: by a thread that this one knows of.
            self.check_uses(at, lane, "makes an mbarrier anew")?;
            let init = Init {
                moment: self.moment(1 << lane),
                site: self.site,
                fenced: false,
                told: None,
            };
            let made = self.cluster.ctas[at.cta as usize].bars[at.slot as usize].init(count, init);
            self.named_fault(made, at, lane)?;
            self.use_bar(at, 1 << lane);
            self.reach_bar(at, 1 << lane);
        }
        self.cluster.progress += 1;
        Ok(Step::Next)
    }

    pub(crate) fn inval(&mut self, bar: &BarRef) -> Exec {
        for lane in lanes_of(self.warp.active) {
            let at = self.live_bar(bar, lane)?;
            self.check_uses(at, lane, "ends an mbarrier")?;
            let ended = self.cluster.ctas[at.cta as usize].bars[at.slot as usize].end();
            self.named_fault(ended, at, lane)?;
            self.use_bar(at, 1 << lane);
            self.reach_bar(at, 1 << lane);
        }
        Ok(Step::Next)
    }

    /// This moment of some lanes.
    pub(crate) fn moment(&self, lanes: Mask) -> Moment {
        Moment {
            thread: self.warp.id,
            lanes,
            clock: self.warp.clock.as_ref().map_or(0, |c| c.now),
        }
    }

    /// Some lanes use a barrier: who ends it must know of that.
    fn use_bar(&mut self, at: BarAt, lanes: Mask) {
        let moment = self.moment(lanes);
        self.used(at, moment);
    }

    /// What copies do in the current phase of a barrier: who knows that the
    /// phase is complete knows of it.
    pub(crate) fn use_phase(&mut self, at: BarAt) {
        let b = &self.cluster.ctas[at.cta as usize].bars[at.slot as usize];
        let moment = Moment {
            thread: self.cluster.threads.barrier(at.cta, at.slot),
            lanes: Mask::MAX,
            clock: b.phase,
        };
        self.used(at, moment);
    }

    fn used(&mut self, at: BarAt, moment: Moment) {
        let (warp, site) = (self.warp.id, self.site);
        let b = &mut self.cluster.ctas[at.cta as usize].bars[at.slot as usize];
        if let Some(uses) = &mut b.uses {
            uses.note(Last { moment, warp, site });
        }
    }

    /// Refuses to end a barrier, or to make it anew, unless all that was done
    /// with it is ordered before.
    fn check_uses(&mut self, at: BarAt, lane: usize, verb: &str) -> Result<(), Fault> {
        let b = &self.cluster.ctas[at.cta as usize].bars[at.slot as usize];
        let (Some(uses), Some(clock)) = (&b.uses, &self.warp.clock) else {
            return Ok(());
        };
        let Some(last) = uses.unknown(|m| clock.knows(lane as u8, m)) else {
            return Ok(());
        };
        self.other = Some(self.party(last.warp, last.site));
        let race = Fault::new(
            FaultKind::Race,
            format!("{verb} that another thread may still use: nothing orders that use before"),
        );
        self.named_fault(Err(race), at, lane)
    }

    /// Some lanes reach a barrier, which may be another CTA's.
    fn reach_bar(&mut self, at: BarAt, lanes: Mask) {
        if at.cta != self.warp.cta {
            self.reach_into(at.cta, lanes);
        }
    }

    /// Some lanes reach into another CTA: it must not leave before.
    pub(crate) fn reach_into(&mut self, cta: u32, lanes: Mask) {
        if !self.env.races {
            return;
        }
        let moment = self.moment(lanes);
        let (warp, site) = (self.warp.id, self.site);
        let reached = &mut self.cluster.ctas[cta as usize].reached;
        reached.note(Last { moment, warp, site });
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
        self.check_bar(at, 1 << lane)?;
        Ok(at)
    }

    /// Refuses a barrier that is not alive, or whose init one of these lanes cannot know of.
    pub(crate) fn check_bar(&mut self, at: BarAt, lanes: Mask) -> Result<(), Fault> {
        self.check_here(at.cta)?;
        let b = &self.cluster.ctas[at.cta as usize].bars[at.slot as usize];
        let live = b.check_live();
        let seen = match (&b.init, &self.warp.clock) {
            (Some(init), Some(clock)) => init.fenced && clock.all_know(&init.moment),
            _ => true,
        };
        self.named_fault(live, at, lanes.trailing_zeros() as usize)?;
        if seen {
            return Ok(());
        }
        lanes_of(lanes).try_for_each(|lane| self.check_init(at, lane))
    }

    /// Refuses a barrier whose init this lane cannot know of.
    fn check_init(&mut self, at: BarAt, lane: usize) -> Result<(), Fault> {
        let init = self.cluster.ctas[at.cta as usize].bars[at.slot as usize].init;
        let (Some(init), Some(clock)) = (init, &self.warp.clock) else {
            return Ok(());
        };
        let own = init.moment.thread == self.warp.id && init.moment.lanes == 1 << lane;
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
        let mut left = self.warp.active;
        while left != 0 {
            let (at, lanes) = self.same_bar(bar, left)?;
            left &= !lanes;
            self.use_bar(at, lanes);
            self.reach_bar(at, lanes);
            let counts = match count {
                Some(Operand::Imm(n)) => n * u64::from(lanes.count_ones()),
                Some(o) => lanes_of(lanes).map(|l| u64::from(self.one(o, l))).sum(),
                None => 0,
            };
            // Lanes whose arrivals all count in this phase are released
            // together; else each with the phase that it arrives in.
            let b = &mut self.cluster.ctas[at.cta as usize].bars[at.slot as usize];
            let together = counts <= u64::from(b.arrivals);
            if let (Some(p), Some(clock), true, Some(_)) =
                (&mut b.passing, &self.warp.clock, together, count)
            {
                clock.tell(lanes, &mut p.came);
            }
            for lane in lanes_of(lanes) {
                let tx = tx.map_or(0, |o| self.one(o, lane));
                let count = count.map(|o| self.one(o, lane));
                let b = &mut self.cluster.ctas[at.cta as usize].bars[at.slot as usize];
                if let (Some(p), Some(clock), false, Some(_)) =
                    (&mut b.passing, &self.warp.clock, together, count)
                {
                    clock.tell(1 << lane, &mut p.came);
                }
                let done = b
                    .expect(tx)
                    .and_then(|()| count.map_or(Ok(false), |n| b.arrive(n, leave)));
                self.named_fault(done, at, lane)?;
            }
        }
        if let (Some(c), Some(_)) = (&mut self.warp.clock, count) {
            c.now += 1;
        }
        self.cluster.stir();
        Ok(Step::Next)
    }

    /// The barrier of the first of some lanes, and those that name the same; all may use it.
    fn same_bar(&mut self, bar: &BarRef, lanes: Mask) -> Result<(BarAt, Mask), Fault> {
        let first = lanes.trailing_zeros() as usize;
        let at = self.resolve_bar(bar, first)?;
        let mut same = lanes;
        if !self.names_one(bar, lanes) {
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

    /// Do some lanes name one barrier?
    fn names_one(&mut self, bar: &BarRef, lanes: Mask) -> bool {
        self.uniform(bar.index, lanes) && bar.peer.is_none_or(|p| self.uniform(p, lanes))
    }

    /// A barrier of this CTA, to be waited for, and a parity.
    fn awaited(
        &mut self,
        bar: &BarRef,
        parity: Operand,
        lanes: Mask,
    ) -> Result<(BarAt, u32), Fault> {
        let lane = lanes.trailing_zeros() as usize;
        let at = self.resolve_bar(bar, lane)?;
        self.check_bar(at, lanes)?;
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
    }

    fn is_past(&self, at: BarAt, parity: u32) -> bool {
        self.cluster.ctas[at.cta as usize].bars[at.slot as usize].passes(parity)
    }

    pub(crate) fn wait(&mut self, bar: &BarRef, parity: Operand) -> Exec {
        let lanes = self.warp.active;
        // The usual case: the lanes wait for one barrier, and pass together.
        if self.names_one(bar, lanes) && self.uniform(parity, lanes) {
            let (at, parity) = self.awaited(bar, parity, lanes)?;
            self.use_bar(at, lanes);
            if !self.is_past(at, parity) {
                return self.block(Waiting::Mbarrier { bar: at, parity });
            }
            self.pass_bar(at, lanes);
            return Ok(Step::Next);
        }
        for lane in lanes_of(lanes & !self.warp.passed) {
            let (at, parity) = self.awaited(bar, parity, 1 << lane)?;
            self.use_bar(at, 1 << lane);
            if !self.is_past(at, parity) {
                return self.block(Waiting::Mbarrier { bar: at, parity });
            }
            self.pass_bar(at, 1 << lane);
            self.warp.passed |= 1 << lane;
        }
        self.warp.passed = 0;
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
        let (at, parity) = self.awaited(bar, parity, lanes)?;
        self.use_bar(at, lanes);
        if !self.is_past(at, parity) {
            self.polled = true;
            return Ok(Step::Blocked);
        }
        self.pass_bar(at, lanes);
        Ok(Step::Next)
    }
}
