//! The state of a run: warps, memory, barriers, asynchronous ops, and happens-before.

use super::happens_before::Events;
use std::hash::{Hash, Hasher};
use warpline_ir::{Job, Mask, ResolvedBarrier, WARP};

/// The values of a register in every lane.
pub(super) type Row = [u64; WARP];

/// A warp.
#[derive(Clone)]
pub(super) struct Warp {
    pub(super) role: usize,
    pub(super) cta: usize,
    pub(super) index: u32,
    pub(super) pc: usize,
    pub(super) active: Mask,
    /// The active lanes of each enclosing statement, and those that took its first branch.
    pub(super) frames: Vec<(Mask, Mask)>,
    pub(super) regs: Vec<Row>,
    pub(super) barrier: BarrierState,
    /// The phase of the cluster barrier at the last arrival.
    pub(super) arrived_at: u32,
    /// The bulk groups of each lane; the last one is open.
    pub(super) bulk: Vec<Vec<Vec<usize>>>,
    /// The `cp.async` groups of each lane; the last one is open.
    pub(super) copies: Vec<Vec<Vec<usize>>>,
    pub(super) done: bool,
}

/// The state of a warp at a CTA barrier or a named barrier.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum BarrierState {
    Idle,
    Arrived,
    Released,
}

/// The state of an mbarrier.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct MbarrierState {
    pub(super) live: bool,
    pub(super) count: u32,
    pub(super) left: u32,
    pub(super) bytes: i64,
    pub(super) parity: bool,
}

/// The state of a named barrier.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct NamedBarrierState {
    pub(super) arrived: u32,
    pub(super) threads: u32,
}

/// An asynchronous op that has not completed.
#[derive(Clone)]
pub(super) enum InFlight {
    /// A job of an engine.
    Job {
        job: Job,
        /// The lane and the event of each access.
        events: Vec<(usize, usize)>,
        /// The observer slot with the events that are visible to the issuer.
        slot: usize,
    },
    /// Arrivals of lanes after their copies complete.
    Arrival {
        arrivals: Vec<(ResolvedBarrier, usize)>,
        jobs: Vec<usize>,
        /// The lane and the event of each copy.
        events: Vec<(usize, usize)>,
        cta: usize,
    },
}

/// The state of a run.
#[derive(Clone)]
pub(super) struct State {
    pub(super) warps: Vec<Warp>,
    /// Shared memory of each CTA.
    pub(super) shared: Vec<Vec<u8>>,
    /// Global memory.
    pub(super) global: Vec<Vec<u8>>,
    pub(super) bars: Vec<MbarrierState>,
    pub(super) named: Vec<NamedBarrierState>,
    /// The arrived warps and the phase of the cluster barrier.
    pub(super) cluster: (u32, u32),
    /// The asynchronous ops; `None` after completion.
    pub(super) in_flight: Vec<Option<InFlight>>,
    pub(super) events: Events,
}

impl State {
    /// Returns whether all warps have ended.
    pub(super) fn is_over(&self) -> bool {
        self.warps.iter().all(|w| w.done)
    }

    /// Returns a hash that is equal for states with the same behavior.
    pub(super) fn key(&self) -> u64 {
        let mut h = rustc_hash::FxHasher::default();
        for w in &self.warps {
            (w.pc, w.active, &w.frames, w.barrier, w.done).hash(&mut h);
            (self.cluster.1 - w.arrived_at.min(self.cluster.1)).hash(&mut h);
            w.regs.hash(&mut h);
            w.bulk.hash(&mut h);
            w.copies.hash(&mut h);
        }
        (&self.shared, &self.global, &self.bars, &self.named).hash(&mut h);
        self.cluster.0.hash(&mut h);
        for entry in &self.in_flight {
            entry.is_some().hash(&mut h);
        }
        self.events.hash(&mut h);
        h.finish()
    }
}
