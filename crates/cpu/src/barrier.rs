//! Barriers as state: mbarriers, meetings of threads, the cluster's barrier.
//!
//! They count; the clocks they carry are `None` where races are not looked for.

use crate::clock::{Clock, Moment, Threads};
use crate::last::LastMoments;
use warpline_ir::{Fault, FaultKind, Tally};

/// The most arrivals or bytes an mbarrier counts.
const MAX_COUNT: u32 = (1 << 20) - 1;

/// What a barrier passes from those who come to those who go.
#[derive(Clone, Debug)]
pub(crate) struct Passing {
    /// What those know who have come since the start.
    pub(crate) came: Clock,
    /// What was known when the last phase was complete.
    pub(crate) complete: Clock,
}

impl Passing {
    /// Nothing yet.
    pub(crate) fn new(t: &Threads) -> Self {
        Self {
            came: Clock::new(t),
            complete: Clock::new(t),
        }
    }

    fn turn(this: &mut Option<Box<Self>>) {
        if let Some(p) = this {
            p.complete.copy(&p.came);
        }
    }
}

/// Who made an mbarrier, and whether the others may know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Init {
    /// When and by which lane.
    pub(crate) moment: Moment,
    /// The op.
    pub(crate) site: u32,
    /// Did that lane run `fence.mbarrier_init` since?
    pub(crate) fenced: bool,
    /// The cluster's meeting that it came to after that.
    pub(crate) told: Option<u32>,
}

/// The life of an mbarrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Life {
    Unborn,
    Live,
    Ended,
}

/// An mbarrier.
#[derive(Clone, Debug)]
pub(crate) struct Mbarrier {
    life: Life,
    count: u32,
    /// Arrivals that the current phase lacks.
    pub(crate) arrivals: u32,
    /// Bytes that the current phase lacks; negative if bytes came before they were expected.
    pub(crate) bytes: i64,
    /// Phases that are complete.
    pub(crate) phase: u32,
    pub(crate) init: Option<Init>,
    /// What was done with it, where barriers end and races are looked for.
    pub(crate) uses: Option<LastMoments>,
    pub(crate) passing: Option<Box<Passing>>,
}

fn barrier(text: String) -> Fault {
    Fault::new(FaultKind::Barrier, text)
}

impl Mbarrier {
    /// Before its init.
    pub(crate) fn new(passing: Option<Box<Passing>>) -> Self {
        Self {
            life: Life::Unborn,
            count: 0,
            arrivals: 0,
            bytes: 0,
            phase: 0,
            init: None,
            uses: None,
            passing,
        }
    }

    /// Is it between init and end?
    pub(crate) fn check_live(&self) -> Result<(), Fault> {
        match self.life {
            Life::Live => Ok(()),
            Life::Unborn => Err(barrier("uses an mbarrier before its init".into())),
            Life::Ended => Err(barrier("uses an mbarrier after its end".into())),
        }
    }

    /// The count of arrivals of a phase that is neither complete nor untouched.
    pub(crate) fn in_phase(&self) -> Option<u32> {
        let touched = self.arrivals != self.count || self.bytes != 0;
        (self.life == Life::Live && touched).then_some(self.count)
    }

    /// Comes to life.
    pub(crate) fn init(&mut self, count: u32, init: Init) -> Result<(), Fault> {
        if self.life == Life::Live {
            return Err(barrier("makes an mbarrier a second time".into()));
        }
        if !(1..=MAX_COUNT).contains(&count) {
            return Err(barrier(format!(
                "an mbarrier counts 1 to {MAX_COUNT} arrivals, not {count}"
            )));
        }
        self.life = Life::Live;
        (self.count, self.arrivals, self.bytes) = (count, count, 0);
        // Every life begins at parity 0; phases go on counting, as clocks do.
        self.phase += self.phase & 1;
        self.init = Some(init);
        Ok(())
    }

    /// Ends.
    pub(crate) fn end(&mut self) -> Result<(), Fault> {
        self.check_live()?;
        self.life = Life::Ended;
        Ok(())
    }

    /// Expects bytes in the current phase.
    pub(crate) fn expect(&mut self, bytes: u32) -> Result<(), Fault> {
        self.bytes += i64::from(bytes);
        self.check_bytes()
    }

    /// Expects more arrivals in the current phase.
    pub(crate) fn expect_more(&mut self, arrivals: u32) -> Result<(), Fault> {
        self.arrivals += arrivals;
        match self.arrivals {
            0..=MAX_COUNT => Ok(()),
            n => Err(barrier(format!(
                "an mbarrier counts up to {MAX_COUNT} arrivals, not {n}"
            ))),
        }
    }

    /// Arrives, and leaves for good if asked to; says whether the phase is complete.
    pub(crate) fn arrive(&mut self, count: u32, leave: bool) -> Result<bool, Fault> {
        if count > self.arrivals {
            return Err(barrier(format!(
                "arrives {count} times at an mbarrier that expects {} more of {} arrivals in this phase",
                self.arrivals, self.count
            )));
        }
        self.arrivals -= count;
        if leave {
            self.count -= count;
        }
        Ok(self.turn())
    }

    /// Counts bytes that have come; says whether the phase is complete.
    pub(crate) fn receive(&mut self, bytes: u32) -> Result<bool, Fault> {
        self.bytes -= i64::from(bytes);
        self.check_bytes()?;
        Ok(self.turn())
    }

    fn check_bytes(&self) -> Result<(), Fault> {
        if self.bytes.unsigned_abs() <= u64::from(MAX_COUNT) {
            return Ok(());
        }
        Err(barrier(format!(
            "an mbarrier counts up to {MAX_COUNT} bytes, not {}",
            self.bytes
        )))
    }

    fn turn(&mut self) -> bool {
        let done = self.arrivals == 0 && self.bytes == 0;
        if done {
            self.arrivals = self.count;
            self.phase += 1;
            Passing::turn(&mut self.passing);
        }
        done
    }

    /// Is the phase of a parity complete?
    pub(crate) fn passes(&self, parity: u32) -> bool {
        self.phase & 1 != parity
    }
}

/// How a warp comes to a meeting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Coming {
    /// It waits for the rest.
    Waits,
    /// It does not.
    GoesOn,
    /// It waits, and so many of its threads say yes.
    Counts { tally: Tally, yes: u32 },
}

impl Coming {
    fn tally(self) -> Option<Tally> {
        match self {
            Coming::Counts { tally, .. } => Some(tally),
            _ => None,
        }
    }
}

/// What a meeting has counted, until all its warps know.
#[derive(Clone, Copy, Debug)]
struct Counted {
    meeting: u32,
    yes: u32,
    warps: u32,
}

/// A barrier at which a number of threads meet: the CTA's own, or a named one.
#[derive(Clone, Debug)]
pub(crate) struct Meeting {
    /// Threads of the meeting that is on; 0: nobody has come.
    pub(crate) threads: u32,
    /// Threads that have come.
    pub(crate) arrived: u32,
    /// Meetings that are over.
    pub(crate) over: u32,
    /// What those who have come count.
    tally: Option<Tally>,
    /// How many said yes.
    yes: u32,
    counted: Vec<Counted>,
    pub(crate) passing: Option<Box<Passing>>,
}

impl Meeting {
    /// Nobody has come.
    pub(crate) fn new(passing: Option<Box<Passing>>) -> Self {
        Self {
            threads: 0,
            arrived: 0,
            over: 0,
            tally: None,
            yes: 0,
            counted: Vec::new(),
            passing,
        }
    }

    /// A warp comes to a meeting of `threads`; says whether all are there.
    pub(crate) fn arrive(&mut self, threads: u32, coming: Coming) -> Result<bool, Fault> {
        if self.arrived > 0 && self.threads != threads {
            return Err(barrier(format!(
                "meets {threads} threads at a barrier where others meet {}",
                self.threads
            )));
        }
        if threads == 0 || !threads.is_multiple_of(32) {
            return Err(barrier(format!(
                "a barrier is for a multiple of 32 threads, not for {threads}"
            )));
        }
        if self.arrived > 0 && self.tally != coming.tally() {
            let does = |t: Option<Tally>| t.map_or("sync or arrive", Tally::name);
            return Err(barrier(format!(
                "does {} at a barrier where others do {}",
                does(coming.tally()),
                does(self.tally)
            )));
        }
        if self.arrived == 0 {
            (self.tally, self.yes) = (coming.tally(), 0);
        }
        if let Coming::Counts { yes, .. } = coming {
            self.yes += yes;
        }
        self.threads = threads;
        self.arrived += 32;
        Ok(self.turn())
    }

    /// Ends the meeting if all are there.
    fn turn(&mut self) -> bool {
        let done = self.arrived > 0 && self.arrived >= self.threads;
        if done {
            if self.tally.is_some() {
                self.counted.push(Counted {
                    meeting: self.over,
                    yes: self.yes,
                    warps: self.threads / 32,
                });
            }
            self.arrived = 0;
            self.over += 1;
            Passing::turn(&mut self.passing);
        }
        done
    }

    /// How many said yes in a meeting that is over, for one of its warps.
    pub(crate) fn take_count(&mut self, meeting: u32) -> u32 {
        let Some(at) = self.counted.iter().position(|c| c.meeting == meeting) else {
            return 0;
        };
        let counted = &mut self.counted[at];
        counted.warps -= 1;
        let Counted { yes, warps, .. } = *counted;
        if warps == 0 {
            self.counted.swap_remove(at);
        }
        yes
    }

    /// Those who have left need not come; says whether all others are there.
    pub(crate) fn shrink(&mut self, threads: u32) -> bool {
        self.threads = threads;
        self.turn()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(count: u32) -> Mbarrier {
        let mut b = Mbarrier::new(None);
        b.init(count, begun()).unwrap();
        b
    }

    fn begun() -> Init {
        let moment = Moment {
            thread: 0,
            lanes: 1,
            clock: 0,
        };
        Init {
            moment,
            site: 0,
            fenced: true,
            told: None,
        }
    }

    #[test]
    fn a_phase_needs_arrivals_and_bytes() {
        let mut b = live(1);
        assert!(!b.passes(0) && b.passes(1));
        b.expect(64).unwrap();
        assert!(!b.arrive(1, false).unwrap());
        assert!(!b.receive(32).unwrap());
        assert!(b.receive(32).unwrap());
        assert!(b.passes(0) && !b.passes(1));
    }

    #[test]
    fn one_that_is_made_anew_begins_at_parity_0() {
        let mut b = live(1);
        assert!(b.arrive(1, false).unwrap());
        b.end().unwrap();
        b.init(2, begun()).unwrap();
        assert!(!b.passes(0) && b.passes(1));
    }

    #[test]
    fn bytes_may_come_before_they_are_expected() {
        let mut b = live(1);
        assert!(!b.receive(64).unwrap());
        b.expect(64).unwrap();
        assert!(b.arrive(1, false).unwrap());
    }

    #[test]
    fn one_who_leaves_is_not_expected_again() {
        let mut b = live(2);
        assert!(!b.arrive(1, true).unwrap());
        assert!(b.arrive(1, false).unwrap());
        assert!(b.arrive(1, false).unwrap());
        assert!(b.arrive(2, true).is_err());
    }

    #[test]
    fn too_many_arrivals_and_bytes_are_faults() {
        let mut b = live(2);
        assert!(b.arrive(3, false).is_err());
        assert!(b.expect(1 << 20).is_err());
        assert!(Mbarrier::new(None).check_live().is_err());
        b.end().unwrap();
        assert!(b.check_live().unwrap_err().text.contains("after its end"));
    }

    #[test]
    fn a_meeting_ends_when_all_are_there() {
        let mut m = Meeting::new(None);
        let mut arrive = |threads| m.arrive(threads, Coming::Waits);
        assert!(!arrive(64).unwrap());
        assert!(arrive(96).is_err());
        assert!(arrive(64).unwrap());
        assert!(arrive(33).is_err());
        assert_eq!(m.over, 1);
    }

    #[test]
    fn a_meeting_keeps_its_count_until_all_know() {
        let mut m = Meeting::new(None);
        let count = |yes| Coming::Counts {
            tally: Tally::Count,
            yes,
        };
        assert!(!m.arrive(64, count(3)).unwrap());
        let mixed = m.arrive(64, Coming::GoesOn).unwrap_err();
        assert!(mixed.text.contains("others do count"), "{}", mixed.text);
        assert!(m.arrive(64, count(4)).unwrap());
        assert_eq!(m.take_count(0), 7);
        // Others meet before the second warp has looked.
        assert!(m.arrive(32, count(1)).unwrap());
        assert_eq!((m.take_count(1), m.take_count(0)), (1, 7));
        assert!(m.counted.is_empty());
    }
}
