//! One warp: where it is, which lanes run, its registers, what it waits for.

use crate::compile::{RoleCode, Slot};
use crate::order::Fenced;
use crate::warp_clock::WarpClock;
use warpline_ir::{BarAt, Lane, Lanes, Mask, RegId};

/// A warp, between two steps.
#[derive(Debug)]
pub(crate) struct Warp {
    /// Counted through the cluster.
    pub(crate) id: u32,
    /// Rank of its CTA in the cluster.
    pub(crate) cta: u32,
    /// Counted through the CTA.
    pub(crate) index: u32,
    /// Its role.
    pub(crate) role: usize,
    /// The next step.
    pub(crate) pc: u32,
    /// The lanes that run.
    pub(crate) active: Mask,
    /// Masks to go back to.
    pub(crate) saved: Vec<Saved>,
    /// Its registers.
    pub(crate) regs: Registers,
    /// Can it run?
    pub(crate) status: Status,
    /// Is it among those that will?
    pub(crate) queued: bool,
    /// Lanes that a wait of single lanes has let pass.
    pub(crate) passed: Mask,
    /// Registers of each thread, where roles move them.
    pub(crate) budget: u32,
    /// The cluster's meeting it has come to and not waited for.
    pub(crate) at_cluster: Option<u32>,
    /// Meetings of the cluster that it has left.
    pub(crate) left_cluster: u32,
    /// Its part in wgmmas, if its role runs any.
    pub(crate) wgmma: Option<Box<InFlight>>,
    /// Copies it has issued in bulk groups.
    pub(crate) copies: u32,
    /// Ops it has run, and with how many lanes.
    pub(crate) ran: Ran,
    /// Ops it had run when it last waited.
    pub(crate) waited: u64,
    /// Accesses to memory it has made.
    pub(crate) accesses: u64,
    /// Work it has given to engines.
    pub(crate) jobs: u64,
    /// What it knows, where races are looked for.
    pub(crate) clock: Option<Box<WarpClock>>,
    /// What its fences make of its relaxed accesses.
    pub(crate) fenced: Option<Box<Fenced>>,
}

/// A mask to go back to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Saved {
    /// The lanes before the split.
    pub(crate) lanes: Mask,
    /// Those that have yet to run the other branch.
    pub(crate) other: Mask,
    /// The branch that splits; none where one lane was asked for.
    pub(crate) branch: Option<u32>,
    /// What the warp had run until then.
    pub(crate) before: Ran,
}

/// What a warp has run.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Ran {
    /// Ops.
    pub(crate) ops: u64,
    /// Lanes that took part, summed over ops.
    pub(crate) lanes: u64,
    /// Lanes that masks further in kept from them.
    pub(crate) lost: u64,
}

impl Ran {
    /// The ops since a mask was saved, and the lanes of it that they lacked,
    /// but for those that masks further in took away.
    pub(crate) fn since(&self, saved: &Saved) -> (u64, u64) {
        let ops = self.ops - saved.before.ops;
        let lanes = self.lanes - saved.before.lanes;
        let lost = self.lost - saved.before.lost;
        (
            ops,
            ops * u64::from(saved.lanes.count_ones()) - lanes - lost,
        )
    }
}

/// Can a warp run?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Status {
    Ready,
    Waiting(Waiting),
    Exited,
}

/// What a warp waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Waiting {
    /// A phase of an mbarrier.
    Mbarrier { bar: BarAt, parity: u32 },
    /// The end of a meeting at a named barrier.
    Named { named: u32, meeting: u32 },
    /// The end of a meeting of the CTA.
    Cta { meeting: u32 },
    /// The end of a meeting of the cluster.
    Cluster { meeting: u32 },
    /// A lane's bulk groups.
    Bulk { lane: u32, pending: u32, read: bool },
    /// A lane's own copies below a number.
    Copies { lane: u32, past: u32 },
    /// So many wgmmas of its warpgroup.
    Wgmma { done: u32 },
    /// Registers of the pool, for one warp.
    Registers { count: u32, wanted: u32 },
}

impl Warp {
    /// A warp at the start of its role.
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
            passed: 0,
            budget: 0,
            at_cluster: None,
            left_cluster: 0,
            wgmma: code.wgmma.then(|| Box::new(InFlight::new(registers))),
            copies: 0,
            ran: Ran::default(),
            waited: 0,
            accesses: 0,
            jobs: 0,
            clock: None,
            fenced: None,
        }
    }
}

/// A warp's registers: 32 lanes of each, one after the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Registers {
    words: Vec<u64>,
    preds: Vec<Mask>,
}

impl Registers {
    /// All lanes of a register.
    #[inline]
    pub(crate) fn get<T: Lane>(&self, s: Slot) -> &Lanes<T> {
        let words = size_of::<Lanes<T>>() / 8;
        bytemuck::from_bytes(bytemuck::cast_slice(
            &self.words[s.0 as usize..s.0 as usize + words],
        ))
    }

    /// All lanes of a register, to change.
    #[inline]
    pub(crate) fn get_mut<T: Lane>(&mut self, s: Slot) -> &mut Lanes<T> {
        let words = size_of::<Lanes<T>>() / 8;
        bytemuck::from_bytes_mut(bytemuck::cast_slice_mut(
            &mut self.words[s.0 as usize..s.0 as usize + words],
        ))
    }

    /// A predicate.
    #[inline]
    pub(crate) fn pred(&self, s: Slot) -> Mask {
        self.preds[s.0 as usize]
    }

    /// A predicate, to change.
    #[inline]
    pub(crate) fn pred_mut(&mut self, s: Slot) -> &mut Mask {
        &mut self.preds[s.0 as usize]
    }
}

/// A warp's part in the wgmmas of its warpgroup, and the registers they own.
///
/// wgmmas are numbered from 0 in the order in which the warp issues them; the
/// four warps of a warpgroup agree on the numbers.
#[derive(Debug)]
pub(crate) struct InFlight {
    /// wgmmas issued.
    pub(crate) issued: u32,
    /// wgmmas that a wait has covered.
    pub(crate) waited: u32,
    /// For each group that no wait has covered: wgmmas issued up to its end.
    pub(crate) groups: Vec<u32>,
    /// `wgmma.fence`s run.
    pub(crate) fences: u32,
    /// By register: `fences` at its last write by the warp, plus 1.
    written: Vec<u32>,
    /// By register: the number of the last wgmma that uses it, plus 1.
    used: Vec<u32>,
}

impl InFlight {
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

    /// Is a register owned by a wgmma that no wait has covered?
    #[inline]
    pub(crate) fn owns(&self, r: RegId) -> bool {
        self.issued > self.waited && self.used[r.index()] > self.waited
    }

    /// The warp writes a register.
    #[inline]
    pub(crate) fn wrote(&mut self, r: RegId) {
        self.written[r.index()] = self.fences + 1;
    }

    /// Was a register written since the last `wgmma.fence`?
    pub(crate) fn unfenced(&self, r: RegId) -> bool {
        self.written[r.index()] > self.fences
    }

    /// The wgmma being issued uses a register.
    pub(crate) fn uses(&mut self, r: RegId) {
        self.used[r.index()] = self.issued + 1;
    }
}
