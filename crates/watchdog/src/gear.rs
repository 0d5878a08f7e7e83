//! What a watched kernel has on top: parameters, a barrier, time limits.

use crate::emit::Emit;
use crate::note::Notes;
use warpline_ir::ops::atomic::{StrongLoad, StrongStore};
use warpline_ir::ops::compare::Cmp;
use warpline_ir::{At, BarId, MemoryOrder, Operand, ParamId, RegId, Scope, Type};

/// How long a watched kernel waits, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// For what it waits for: a wait that takes longer is given up.
    pub wait: u64,
    /// For the other warps of a CTA to leave as well; then it traps.
    pub leave: u64,
    /// For copies in flight, before it leaves.
    pub linger: u64,
}

impl Default for Limits {
    /// A report within a second of the hang.
    fn default() -> Self {
        Self {
            wait: 500_000_000,
            leave: 100_000_000,
            linger: 50_000,
        }
    }
}

/// What the statements of the watchdog use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gear {
    pub(crate) notes: Notes,
    /// A word on the device, zero at launch: not zero once a wait was given up.
    pub(crate) abort: ParamId,
    /// An mbarrier that every warp arrives at before it leaves, where there is room for one.
    pub(crate) left: Option<BarId>,
    pub(crate) limits: Limits,
}

impl Gear {
    /// Shall a wait that began at `start` be given up: is it late, or was another given up?
    pub(crate) fn over(&self, e: &mut Emit<'_>, start: RegId) -> RegId {
        let late = e.past(start, self.limits.wait);
        let told = self.told(e);
        e.or(late, told)
    }

    /// Has another wait been given up?
    pub(crate) fn told(&self, e: &mut Emit<'_>) -> RegId {
        let (at, word) = (self.word(e), e.reg(Type::U32));
        e.op(StrongLoad {
            ty: Type::U32,
            dst: word,
            at,
            order: MemoryOrder::relaxed(Scope::Gpu),
        });
        e.compare(Cmp::Ne, Type::U32, word, Operand::Imm(0))
    }

    /// Tells all other warps of the grid to give their waits up.
    pub(crate) fn abort(&self, e: &mut Emit<'_>) {
        let at = self.word(e);
        e.op(StrongStore {
            ty: Type::U32,
            src: Operand::imm(1u32),
            at,
            order: MemoryOrder::relaxed(Scope::Gpu),
        });
    }

    fn word(&self, e: &mut Emit<'_>) -> At {
        let addr = e.address(self.abort).into();
        At::Global { addr, offset: 0 }
    }
}
