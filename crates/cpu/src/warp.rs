//! The state of one warp: program counter, active mask, registers, wait.

use crate::compile::{RegisterSlot, RoleCode};
use crate::release_acquire::FenceState;
use crate::warp_clock::WarpClock;
use warpline_ir::{Lane, Mask, PerLane, RegId, ResolvedBarrier};

/// The state of a warp.
#[derive(Debug)]
pub(crate) struct Warp {
    /// The index in the cluster.
    pub(crate) id: u32,
    /// The rank of its CTA.
    pub(crate) cta: u32,
    /// The index in the CTA.
    pub(crate) index: u32,
    /// The role.
    pub(crate) role: usize,
    /// The next instruction.
    pub(crate) pc: u32,
    /// The active lanes.
    pub(crate) active: Mask,
    /// Saved masks.
    pub(crate) saved: Vec<SavedMask>,
    /// The registers.
    pub(crate) regs: Registers,
    /// Whether the warp is ready, waits or has exited.
    pub(crate) status: Status,
    /// Whether the warp is in a queue of the scheduler.
    pub(crate) queued: bool,
    /// The lanes that already passed a divergent wait.
    pub(crate) lanes_past_wait: Mask,
    /// Registers per thread, if roles run `setmaxnreg`.
    pub(crate) budget: u32,
    /// The phase of the cluster barrier at which it arrived, until it waits.
    pub(crate) cluster_arrival: Option<u32>,
    /// The number of cluster barrier phases that it passed.
    pub(crate) cluster_phases_passed: u32,
    /// The state of its wgmmas, if its role runs wgmmas.
    pub(crate) wgmma: Option<Box<WgmmaState>>,
    /// The number of issued bulk-group copies.
    pub(crate) bulk_copies: u32,
    /// The executed ops and lanes.
    pub(crate) executed: OpCounts,
    /// The number of executed ops at the last wait.
    pub(crate) ops_at_last_wait: u64,
    /// The number of memory accesses.
    pub(crate) accesses: u64,
    /// The number of issued asynchronous ops.
    pub(crate) async_ops: u64,
    /// The vector clock, if races are checked.
    pub(crate) clock: Option<Box<WarpClock>>,
    /// The state of fences and relaxed accesses.
    pub(crate) fence_state: Option<Box<FenceState>>,
}

/// A saved mask.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SavedMask {
    /// The active lanes before the split.
    pub(crate) lanes: Mask,
    /// The lanes that have not run the other branch yet.
    pub(crate) other: Mask,
    /// The branch; `None` for `elect`.
    pub(crate) branch: Option<u32>,
    /// The executed ops at the split.
    pub(crate) before: OpCounts,
}

/// Counts of executed ops.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct OpCounts {
    /// Ops.
    pub(crate) ops: u64,
    /// Active lanes, summed over ops.
    pub(crate) lanes: u64,
    /// Lanes masked off by inner branches, summed over ops.
    pub(crate) masked: u64,
}

impl OpCounts {
    /// Returns the ops since a mask was saved, and the inactive lanes of that mask, without those
    /// masked off by inner branches.
    pub(crate) fn since(&self, saved: &SavedMask) -> (u64, u64) {
        let ops = self.ops - saved.before.ops;
        let lanes = self.lanes - saved.before.lanes;
        let masked = self.masked - saved.before.masked;
        (
            ops,
            ops * u64::from(saved.lanes.count_ones()) - lanes - masked,
        )
    }
}

/// The status of a warp.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Status {
    Ready,
    Waiting(Waiting),
    Exited,
}

/// The condition that a warp waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Waiting {
    /// A phase of an mbarrier.
    Mbarrier { bar: ResolvedBarrier, parity: u32 },
    /// A phase of a named barrier.
    Named { named: u32, phase: u32 },
    /// A phase of the CTA barrier.
    Cta { phase: u32 },
    /// A phase of the cluster barrier.
    Cluster { phase: u32 },
    /// A lane's bulk groups.
    Bulk { lane: u32, pending: u32, read: bool },
    /// A lane's `cp.async` copies with numbers below `end`.
    Copies { lane: u32, end: u32 },
    /// The completion of the first `done` wgmmas of its warpgroup.
    Wgmma { done: u32 },
    /// Registers from the pool.
    Registers { count: u32, wanted: u32 },
}

impl Warp {
    /// Creates a warp at the start of its role.
    pub(crate) fn new(id: u32, cta: u32, index: u32, role: usize, code: &RoleCode<'_>) -> Self {
        let registers = code.registers();
        Self {
            id,
            cta,
            index,
            role,
            pc: 0,
            active: Mask::MAX,
            saved: Vec::new(),
            regs: Registers {
                words: vec![0; code.words],
                preds: vec![0; code.preds],
            },
            status: Status::Ready,
            queued: false,
            lanes_past_wait: 0,
            budget: 0,
            cluster_arrival: None,
            cluster_phases_passed: 0,
            wgmma: code
                .uses_wgmma
                .then(|| Box::new(WgmmaState::new(registers))),
            bulk_copies: 0,
            executed: OpCounts::default(),
            ops_at_last_wait: 0,
            accesses: 0,
            async_ops: 0,
            clock: None,
            fence_state: None,
        }
    }
}

/// The registers of a warp: 32 lanes each, contiguous.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Registers {
    words: Vec<u64>,
    preds: Vec<Mask>,
}

impl Registers {
    /// Returns all lanes of a register.
    #[inline]
    pub(crate) fn get<T: Lane>(&self, s: RegisterSlot) -> &PerLane<T> {
        let words = size_of::<PerLane<T>>() / 8;
        bytemuck::from_bytes(bytemuck::cast_slice(
            &self.words[s.0 as usize..s.0 as usize + words],
        ))
    }

    /// Returns all lanes of a register, mutably.
    #[inline]
    pub(crate) fn get_mut<T: Lane>(&mut self, s: RegisterSlot) -> &mut PerLane<T> {
        let words = size_of::<PerLane<T>>() / 8;
        bytemuck::from_bytes_mut(bytemuck::cast_slice_mut(
            &mut self.words[s.0 as usize..s.0 as usize + words],
        ))
    }

    /// Returns a predicate.
    #[inline]
    pub(crate) fn pred(&self, s: RegisterSlot) -> Mask {
        self.preds[s.0 as usize]
    }

    /// Returns a predicate, mutably.
    #[inline]
    pub(crate) fn pred_mut(&mut self, s: RegisterSlot) -> &mut Mask {
        &mut self.preds[s.0 as usize]
    }
}

/// The state of a warp's wgmmas, and the registers that they use.
///
/// wgmmas are numbered from 0 in issue order; the four warps of a warpgroup agree on the numbers.
#[derive(Debug)]
pub(crate) struct WgmmaState {
    /// The number of issued wgmmas.
    pub(crate) issued: u32,
    /// The number of wgmmas that a wait covered.
    pub(crate) waited: u32,
    /// For each group without a wait: the number of wgmmas issued before its commit.
    pub(crate) groups: Vec<u32>,
    /// The number of `wgmma.fence`s.
    pub(crate) fences: u32,
    /// By register: one more than `fences` at the last write of the warp.
    written: Vec<u32>,
    /// By register: one more than the number of the last wgmma that uses it.
    used: Vec<u32>,
}

impl WgmmaState {
    fn new(registers: usize) -> Self {
        Self {
            issued: 0,
            waited: 0,
            groups: Vec::new(),
            fences: 0,
            written: vec![0; registers],
            used: vec![0; registers],
        }
    }

    /// Whether a wgmma that no wait covered uses a register.
    #[inline]
    pub(crate) fn is_in_flight(&self, r: RegId) -> bool {
        self.issued > self.waited && self.used[r.index()] > self.waited
    }

    /// Records a register write of the warp.
    #[inline]
    pub(crate) fn record_write(&mut self, r: RegId) {
        self.written[r.index()] = self.fences + 1;
    }

    /// Whether a register was written since the last `wgmma.fence`.
    pub(crate) fn is_written_after_fence(&self, r: RegId) -> bool {
        self.written[r.index()] > self.fences
    }

    /// Records a register of the wgmma that is issued next.
    pub(crate) fn record_use(&mut self, r: RegId) {
        self.used[r.index()] = self.issued + 1;
    }
}
