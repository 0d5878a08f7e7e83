//! The state of the watchdog in a kernel: parameters, exit barrier, time limits.

use crate::emit::Emitter;
use crate::status::StatusTable;
use warpline_ir::ops::atomic::{StrongLoad, StrongStore};
use warpline_ir::ops::compare::Cmp;
use warpline_ir::{BarId, MemoryAddress, MemoryOrder, Operand, ParamId, RegId, Scope, Type};

/// Time limits of a watched kernel, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimeLimits {
    /// The limit of a wait; a longer one times out.
    pub wait_ns: u64,
    /// The limit of an exiting warp's wait for the other warps of its CTA; then it traps.
    pub exit_ns: u64,
    /// The delay for copies in flight before a warp exits.
    pub drain_ns: u64,
}

impl Default for TimeLimits {
    /// Limits that report a hang within a second.
    fn default() -> Self {
        Self {
            wait_ns: 500_000_000,
            exit_ns: 100_000_000,
            drain_ns: 50_000,
        }
    }
}

/// The resources of the watchdog's statements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watchdog {
    pub(crate) status: StatusTable,
    /// The abort word in device memory: zero at launch, nonzero after a timeout.
    pub(crate) abort: ParamId,
    /// The mbarrier at which every warp arrives before it exits; `None` if shared memory is full.
    pub(crate) exit_barrier: Option<BarId>,
    pub(crate) limits: TimeLimits,
}

impl Watchdog {
    /// Emits the predicate that a wait since `start` must end: it or another wait timed out.
    pub(crate) fn must_abandon(&self, e: &mut Emitter<'_>, start: RegId) -> RegId {
        let timed_out = e.elapsed(start, self.limits.wait_ns);
        let aborted = self.is_aborted(e);
        e.or(timed_out, aborted)
    }

    /// Emits the predicate that the abort word is set.
    pub(crate) fn is_aborted(&self, e: &mut Emitter<'_>) -> RegId {
        let (at, word) = (self.abort_word(e), e.reg(Type::U32));
        e.op(StrongLoad {
            ty: Type::U32,
            dst: word,
            at,
            order: MemoryOrder::relaxed(Scope::Gpu),
        });
        e.compare(Cmp::Ne, Type::U32, word, Operand::Imm(0))
    }

    /// Emits a write of the abort word, which ends the waits of all warps of the grid.
    pub(crate) fn set_abort(&self, e: &mut Emitter<'_>) {
        let at = self.abort_word(e);
        e.op(StrongStore {
            ty: Type::U32,
            src: Operand::imm(1u32),
            at,
            order: MemoryOrder::relaxed(Scope::Gpu),
        });
    }

    fn abort_word(&self, e: &mut Emitter<'_>) -> MemoryAddress {
        let addr = e.read_pointer(self.abort).into();
        MemoryAddress::Global { addr, offset: 0 }
    }
}
