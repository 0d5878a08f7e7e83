//! The state of barriers: mbarriers, CTA and named barriers, the cluster barrier.
//!
//! Their clocks are `None` if races are not checked.

use crate::clock::{Clock, Epoch, Threads};
use crate::error::TOO_MANY_ARRIVALS;
use crate::last_uses::LastUses;
use warpline_ir::{BarrierReduction, Fault, FaultKind};

/// The maximum arrival count and transaction count of an mbarrier.
const MAX_COUNT: u32 = (1 << 20) - 1;

/// The clocks of a barrier: published by arrivals, acquired by waits.
#[derive(Clone, Debug)]
pub(crate) struct BarrierClocks {
    /// The joined clocks of all arrivals so far.
    pub(crate) arrived_clock: Clock,
    /// `arrived_clock` at the completion of the last phase.
    pub(crate) completed_clock: Clock,
}

impl BarrierClocks {
    /// Creates empty clocks.
    pub(crate) fn new(t: &Threads) -> Self {
        Self {
            arrived_clock: Clock::new(t),
            completed_clock: Clock::new(t),
        }
    }

    fn complete_phase(this: &mut Option<Box<Self>>) {
        if let Some(p) = this {
            p.completed_clock.copy_from(&p.arrived_clock);
        }
    }
}

/// The init of an mbarrier, and its visibility to other threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Init {
    /// The epoch of the init.
    pub(crate) epoch: Epoch,
    /// The op.
    pub(crate) site: u32,
    /// Whether the lane of the init ran `fence.mbarrier_init` afterwards.
    pub(crate) fenced: bool,
    /// The phase of the cluster barrier at which the lane arrived after that fence.
    pub(crate) published_in: Option<u32>,
}

/// The lifetime state of an mbarrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum MbarrierState {
    Uninitialized,
    Live,
    Invalidated,
}

/// An mbarrier.
#[derive(Clone, Debug)]
pub(crate) struct Mbarrier {
    state: MbarrierState,
    count: u32,
    /// Missing arrivals of the current phase.
    pub(crate) arrivals: u32,
    /// Missing bytes of the current phase; negative if bytes arrived before `expect_tx`.
    pub(crate) bytes: i64,
    /// The number of completed phases.
    pub(crate) phase: u32,
    pub(crate) init: Option<Init>,
    /// Its uses, if the kernel invalidates mbarriers and races are checked.
    pub(crate) uses: Option<LastUses>,
    pub(crate) clocks: Option<Box<BarrierClocks>>,
}

fn barrier_fault(text: String) -> Fault {
    Fault::new(FaultKind::Barrier, text)
}

impl Mbarrier {
    /// Creates an mbarrier before its init.
    pub(crate) fn new(clocks: Option<Box<BarrierClocks>>) -> Self {
        Self {
            state: MbarrierState::Uninitialized,
            count: 0,
            arrivals: 0,
            bytes: 0,
            phase: 0,
            init: None,
            uses: None,
            clocks,
        }
    }

    /// Checks that the mbarrier is initialized and not invalidated.
    pub(crate) fn check_live(&self) -> Result<(), Fault> {
        match self.state {
            MbarrierState::Live => Ok(()),
            MbarrierState::Uninitialized => {
                Err(barrier_fault("uses an mbarrier before its init".into()))
            }
            MbarrierState::Invalidated => Err(barrier_fault(
                "uses an mbarrier after `mbarrier.inval`".into(),
            )),
        }
    }

    /// Returns the arrival count, if the current phase has arrivals or bytes but is incomplete.
    pub(crate) fn open_phase_count(&self) -> Option<u32> {
        let has_begun = self.arrivals != self.count || self.bytes != 0;
        (self.state == MbarrierState::Live && has_begun).then_some(self.count)
    }

    /// Initializes the mbarrier.
    pub(crate) fn init(&mut self, count: u32, init: Init) -> Result<(), Fault> {
        if self.state == MbarrierState::Live {
            return Err(barrier_fault(
                "initializes an mbarrier a second time".into(),
            ));
        }
        if !(1..=MAX_COUNT).contains(&count) {
            return Err(barrier_fault(format!(
                "the arrival count must be 1 to {MAX_COUNT}, not {count}"
            )));
        }
        self.state = MbarrierState::Live;
        (self.count, self.arrivals, self.bytes) = (count, count, 0);
        // A new init starts at parity 0; the phase number must keep growing for the clocks.
        self.phase += self.phase & 1;
        self.init = Some(init);
        Ok(())
    }

    /// Invalidates the mbarrier.
    pub(crate) fn invalidate(&mut self) -> Result<(), Fault> {
        self.check_live()?;
        self.state = MbarrierState::Invalidated;
        Ok(())
    }

    /// Adds expected bytes to the current phase.
    pub(crate) fn expect_bytes(&mut self, bytes: u32) -> Result<(), Fault> {
        self.bytes += i64::from(bytes);
        self.check_bytes()
    }

    /// Adds expected arrivals to the current phase.
    pub(crate) fn expect_arrivals(&mut self, arrivals: u32) -> Result<(), Fault> {
        self.arrivals += arrivals;
        match self.arrivals {
            0..=MAX_COUNT => Ok(()),
            n => Err(barrier_fault(format!(
                "{TOO_MANY_ARRIVALS}: {n} pending arrivals exceed the limit of {MAX_COUNT}"
            ))),
        }
    }

    /// Arrives, and drops out of later phases if `drop_out`; returns whether the phase completes.
    pub(crate) fn arrive(&mut self, count: u32, drop_out: bool) -> Result<bool, Fault> {
        if count > self.arrivals {
            return Err(barrier_fault(format!(
                "{TOO_MANY_ARRIVALS}: {count} arrivals, but this phase expects {} more of {}",
                self.arrivals, self.count
            )));
        }
        self.arrivals -= count;
        if drop_out {
            self.count -= count;
        }
        Ok(self.complete_phase())
    }

    /// Counts received bytes; returns whether the phase completes.
    pub(crate) fn receive_bytes(&mut self, bytes: u32) -> Result<bool, Fault> {
        self.bytes -= i64::from(bytes);
        self.check_bytes()?;
        Ok(self.complete_phase())
    }

    fn check_bytes(&self) -> Result<(), Fault> {
        if self.bytes.unsigned_abs() <= u64::from(MAX_COUNT) {
            return Ok(());
        }
        Err(barrier_fault(format!(
            "{} pending bytes exceed the limit of {MAX_COUNT}",
            self.bytes.unsigned_abs()
        )))
    }

    fn complete_phase(&mut self) -> bool {
        let done = self.arrivals == 0 && self.bytes == 0;
        if done {
            self.arrivals = self.count;
            self.phase += 1;
            BarrierClocks::complete_phase(&mut self.clocks);
        }
        done
    }

    /// Whether a wait for a parity passes.
    pub(crate) fn passes(&self, parity: u32) -> bool {
        self.phase & 1 != parity
    }
}

/// How a warp arrives at a barrier of threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BarrierArrival {
    /// `sync`: the warp waits for the phase.
    Sync,
    /// `arrive`: the warp does not wait.
    Arrive,
    /// `red`: the warp waits, and contributes the number of its threads whose predicate is true.
    Reduce {
        reduction: BarrierReduction,
        votes: u32,
    },
}

impl BarrierArrival {
    fn reduction(self) -> Option<BarrierReduction> {
        match self {
            BarrierArrival::Reduce { reduction, .. } => Some(reduction),
            _ => None,
        }
    }
}

/// The result of a reduction, kept until all warps have read it.
#[derive(Clone, Copy, Debug)]
struct ReductionResult {
    phase: u32,
    votes: u32,
    warps: u32,
}

/// A barrier of threads: the CTA barrier, a named barrier, or the cluster barrier.
#[derive(Clone, Debug)]
pub(crate) struct ThreadBarrier {
    /// The thread count of the current phase; 0 before the first arrival.
    pub(crate) threads: u32,
    /// Arrived threads.
    pub(crate) arrived: u32,
    /// The number of completed phases.
    pub(crate) phase: u32,
    /// The reduction of the current phase, if it has one.
    reduction: Option<BarrierReduction>,
    /// The number of arrived threads whose predicate is true.
    votes: u32,
    results: Vec<ReductionResult>,
    pub(crate) clocks: Option<Box<BarrierClocks>>,
}

impl ThreadBarrier {
    /// Creates a barrier without arrivals.
    pub(crate) fn new(clocks: Option<Box<BarrierClocks>>) -> Self {
        Self {
            threads: 0,
            arrived: 0,
            phase: 0,
            reduction: None,
            votes: 0,
            results: Vec::new(),
            clocks,
        }
    }

    /// Records the arrival of a warp at a barrier of `threads` threads; returns whether the phase
    /// completes.
    pub(crate) fn arrive(&mut self, threads: u32, arrival: BarrierArrival) -> Result<bool, Fault> {
        if self.arrived > 0 && self.threads != threads {
            return Err(barrier_fault(format!(
                "names {threads} threads, but other warps at this barrier name {}",
                self.threads
            )));
        }
        if threads == 0 || !threads.is_multiple_of(32) {
            return Err(barrier_fault(format!(
                "the thread count of a barrier must be a multiple of 32, not {threads}"
            )));
        }
        if self.arrived > 0 && self.reduction != arrival.reduction() {
            let operation =
                |t: Option<BarrierReduction>| t.map_or("sync or arrive", BarrierReduction::name);
            return Err(barrier_fault(format!(
                "performs `{}`, but other warps at this barrier perform `{}`",
                operation(arrival.reduction()),
                operation(self.reduction)
            )));
        }
        if self.arrived == 0 {
            (self.reduction, self.votes) = (arrival.reduction(), 0);
        }
        if let BarrierArrival::Reduce { votes, .. } = arrival {
            self.votes += votes;
        }
        self.threads = threads;
        self.arrived += 32;
        Ok(self.complete_phase())
    }

    /// Completes the phase if all threads have arrived.
    fn complete_phase(&mut self) -> bool {
        let done = self.arrived > 0 && self.arrived >= self.threads;
        if done {
            if self.reduction.is_some() {
                self.results.push(ReductionResult {
                    phase: self.phase,
                    votes: self.votes,
                    warps: self.threads / 32,
                });
            }
            self.arrived = 0;
            self.phase += 1;
            BarrierClocks::complete_phase(&mut self.clocks);
        }
        done
    }

    /// Takes the reduction result of a completed phase, for one of its warps.
    pub(crate) fn take_votes(&mut self, phase: u32) -> u32 {
        let Some(at) = self.results.iter().position(|r| r.phase == phase) else {
            return 0;
        };
        let result = &mut self.results[at];
        result.warps -= 1;
        let ReductionResult { votes, warps, .. } = *result;
        if warps == 0 {
            self.results.swap_remove(at);
        }
        votes
    }

    /// Lowers the thread count after a warp exited; returns whether the phase completes.
    pub(crate) fn shrink(&mut self, threads: u32) -> bool {
        self.threads = threads;
        self.complete_phase()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(count: u32) -> Mbarrier {
        let mut b = Mbarrier::new(None);
        b.init(count, fenced_init()).unwrap();
        b
    }

    fn fenced_init() -> Init {
        let epoch = Epoch {
            thread: 0,
            lanes: 1,
            clock: 0,
        };
        Init {
            epoch,
            site: 0,
            fenced: true,
            published_in: None,
        }
    }

    #[test]
    fn a_phase_needs_arrivals_and_bytes() {
        let mut b = live(1);
        assert!(!b.passes(0) && b.passes(1));
        b.expect_bytes(64).unwrap();
        assert!(!b.arrive(1, false).unwrap());
        assert!(!b.receive_bytes(32).unwrap());
        assert!(b.receive_bytes(32).unwrap());
        assert!(b.passes(0) && !b.passes(1));
    }

    #[test]
    fn a_second_init_starts_at_parity_0() {
        let mut b = live(1);
        assert!(b.arrive(1, false).unwrap());
        b.invalidate().unwrap();
        b.init(2, fenced_init()).unwrap();
        assert!(!b.passes(0) && b.passes(1));
    }

    #[test]
    fn bytes_may_arrive_before_expect_tx() {
        let mut b = live(1);
        assert!(!b.receive_bytes(64).unwrap());
        b.expect_bytes(64).unwrap();
        assert!(b.arrive(1, false).unwrap());
    }

    #[test]
    fn arrive_drop_reduces_the_count_of_later_phases() {
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
        assert!(b.expect_bytes(1 << 20).is_err());
        assert!(Mbarrier::new(None).check_live().is_err());
        b.invalidate().unwrap();
        assert!(
            b.check_live()
                .unwrap_err()
                .text
                .contains("after `mbarrier.inval`")
        );
    }

    #[test]
    fn a_phase_completes_when_all_threads_arrive() {
        let mut m = ThreadBarrier::new(None);
        let mut arrive = |threads| m.arrive(threads, BarrierArrival::Sync);
        assert!(!arrive(64).unwrap());
        assert!(arrive(96).is_err());
        assert!(arrive(64).unwrap());
        assert!(arrive(33).is_err());
        assert_eq!(m.phase, 1);
    }

    #[test]
    fn a_reduction_result_is_kept_until_all_warps_read_it() {
        let mut m = ThreadBarrier::new(None);
        let count = |votes| BarrierArrival::Reduce {
            reduction: BarrierReduction::Count,
            votes,
        };
        assert!(!m.arrive(64, count(3)).unwrap());
        let mixed = m.arrive(64, BarrierArrival::Arrive).unwrap_err();
        assert!(mixed.text.contains("perform `count`"), "{}", mixed.text);
        assert!(m.arrive(64, count(4)).unwrap());
        assert_eq!(m.take_votes(0), 7);
        // The next phase completes before the second warp reads the result.
        assert!(m.arrive(32, count(1)).unwrap());
        assert_eq!((m.take_votes(1), m.take_votes(0)), (1, 7));
        assert!(m.results.is_empty());
    }
}
