//! One moment of a run: warps, memory, barriers, work in flight, and who has been told of what.

use super::know::Events;
use std::hash::{Hash, Hasher};
use warpline_ir::{ResolvedBarrier, Job, Mask, WARP};

/// A register in every lane.
pub(super) type Row = [u64; WARP];

/// A warp.
#[derive(Clone)]
pub(super) struct Warp {
    pub(super) role: usize,
    pub(super) cta: usize,
    pub(super) index: u32,
    pub(super) pc: usize,
    pub(super) active: Mask,
    /// Lanes of the statements around, and those that took the first branch.
    pub(super) frames: Vec<(Mask, Mask)>,
    pub(super) regs: Vec<Row>,
    pub(super) gate: Gate,
    /// Phases of the cluster's barrier when it arrived.
    pub(super) arrived_at: u32,
    /// Of each lane: bulk groups, the last one open.
    pub(super) bulk: Vec<Vec<Vec<usize>>>,
    /// Of each lane: `cp.async` groups, the last one open.
    pub(super) copies: Vec<Vec<Vec<usize>>>,
    pub(super) done: bool,
}

/// Where a warp is with a barrier of threads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Gate {
    Open,
    Arrived,
    Passed,
}

/// An mbarrier.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Bar {
    pub(super) live: bool,
    pub(super) count: u32,
    pub(super) left: u32,
    pub(super) bytes: i64,
    pub(super) parity: bool,
}

/// Threads that have come to a named barrier.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Named {
    pub(super) arrived: u32,
    pub(super) threads: u32,
}

/// Work in flight.
#[derive(Clone)]
pub(super) enum Flight {
    /// An engine's.
    Job {
        job: Job,
        /// Its accesses, of which nobody has been told; of copies by lane.
        events: Vec<(usize, usize)>,
        /// Where its issuer's knowledge is kept.
        slot: usize,
    },
    /// Arrivals of lanes once their copies are done.
    Arrival {
        arrivals: Vec<(ResolvedBarrier, usize)>,
        jobs: Vec<usize>,
        /// The copies, by lane.
        events: Vec<(usize, usize)>,
        cta: usize,
    },
}

/// A state.
#[derive(Clone)]
pub(super) struct State {
    pub(super) warps: Vec<Warp>,
    /// Shared memory of each CTA.
    pub(super) shared: Vec<Vec<u8>>,
    /// Global memory.
    pub(super) global: Vec<Vec<u8>>,
    pub(super) bars: Vec<Bar>,
    pub(super) named: Vec<Named>,
    /// Warps that have come to the cluster's barrier, and its phases.
    pub(super) cluster: (u32, u32),
    /// Work in flight; `None`: done.
    pub(super) flights: Vec<Option<Flight>>,
    pub(super) events: Events,
}

impl State {
    /// Have all warps ended?
    pub(super) fn is_over(&self) -> bool {
        self.warps.iter().all(|w| w.done)
    }

    /// A number that is the same for states from which the same follows.
    pub(super) fn key(&self) -> u64 {
        let mut h = rustc_hash::FxHasher::default();
        for w in &self.warps {
            (w.pc, w.active, &w.frames, w.gate, w.done).hash(&mut h);
            (self.cluster.1 - w.arrived_at.min(self.cluster.1)).hash(&mut h);
            w.regs.hash(&mut h);
            w.bulk.hash(&mut h);
            w.copies.hash(&mut h);
        }
        (&self.shared, &self.global, &self.bars, &self.named).hash(&mut h);
        self.cluster.0.hash(&mut h);
        for flight in &self.flights {
            flight.is_some().hash(&mut h);
        }
        self.events.hash(&mut h);
        h.finish()
    }
}
