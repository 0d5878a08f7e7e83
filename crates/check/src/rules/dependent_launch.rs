//! R16, dependent launch (PDL): no access to global memory before the preceding grids end.
//!
//! A dependent launch starts while preceding grids still run, and may share buffers with them. Each
//! thread runs `wait_prerequisites` on every path before it accesses global memory. Two accesses may
//! come before the wait: a prefetch, and a read of memory that no preceding grid writes
//! ([`Param::pdl_safe`]). The runtime knows all grids of a plan and checks that declaration with
//! `rules::written_params` and `rules::pdl_unsafe`.

use super::flow::{Dataflow, run_dataflow};
use super::global_words::Pointers;
use super::{OpSite, RuleContext};
use crate::codes;
use crate::diagnostic::{Findings, Message, Rule};
#[cfg(doc)]
use warpline_ir::Param;
use warpline_ir::{
    AccessKind, Kernel, Loc, MemoryAccess, MemoryAddress, MemoryRegion, Op, ParamId, ParamKind,
    RoleId,
};

/// The rules of this group.
pub const RULES: &[Rule] = &[WAIT, PDL_SAFE];

const WAIT: Rule = codes::R16_WAIT;

const PDL_SAFE: Rule = codes::R16_PDL_SAFE;

pub(crate) fn check<'k>(cx: &RuleContext<'k>, found: &mut Findings<'k>) {
    let is_wait = |op: &OpSite| matches!(op.op, Op::WaitPrerequisites(_));
    // The runtime checks a kernel without a wait if it is a dependent launch.
    if cx.ops.iter().any(is_wait) {
        check_before_wait(cx, found);
    }
}

/// Checks a kernel of a dependent launch, with or without a wait.
pub(crate) fn check_before_wait<'k>(cx: &RuleContext<'k>, found: &mut Findings<'k>) {
    let pointers = Pointers::of(cx.kernel, &cx.ops);
    let is_pdl_safe_read = |t: &MemoryAccess| {
        let param = param_of(&pointers, &t.memory);
        t.access == AccessKind::Read && param.is_some_and(|p| cx.kernel.param(p).pdl_safe)
    };
    let mut act = |op: &OpSite<'k>| match op.op {
        Op::WaitPrerequisites(_) => Some(Act::Wait),
        Op::TensorPrefetchBox(_) => None,
        _ => {
            let mut touches = op.facts.touches.iter();
            touches
                .any(|t| is_global(&t.memory) && !is_pdl_safe_read(t))
                .then(|| Act::Touch(op.loc(), op.op))
        }
    };
    for i in 0..cx.kernel.roles.len() {
        let role = RoleId(i as u32);
        let steps = cx.steps(role, &mut act);
        let mut early = EarlyAccess { first: None };
        run_dataflow(&steps, &mut early, &mut Waited::No);
        if let Some((loc, name)) = early.first {
            let text = Message::new(format!(
                "`{name}` accesses global memory before `wait_prerequisites()`"
            ))
            .label("may run before the preceding grids end")
            .cause("a dependent launch starts while preceding grids still run, and on some path this role does not wait for them before the access");
            found.report(&WAIT, loc, Some(role), text);
        }
    }
}

/// Checks a kernel of a dependent launch against the parameters that running grids may still write.
pub(crate) fn check_pdl_safe<'k>(
    kernel: &'k Kernel,
    written: &[ParamId],
    found: &mut Findings<'k>,
) {
    for param in written.iter().map(|&p| kernel.param(p)) {
        if param.pdl_safe {
            let text = Message::new(format!(
                "parameter `{}` is declared PDL-safe, but a preceding step of the plan writes its buffer",
                param.name
            ))
            .cause("that step may still run when this kernel starts");
            found.report(&PDL_SAFE, param.loc, None, text);
        }
    }
}

/// The part of an op that concerns dependent launches.
enum Act<'k> {
    Wait,
    Touch(Loc, &'k Op),
}

fn is_global(m: &MemoryRegion) -> bool {
    let is_per_lane = matches!(m, MemoryRegion::PerLane(MemoryAddress::Global { .. }, _));
    is_per_lane || matches!(m, MemoryRegion::Tensor(_) | MemoryRegion::Global(..))
}

/// Returns the parameter that an address of global memory comes from, if it is known.
fn param_of(pointers: &Pointers, memory: &MemoryRegion) -> Option<ParamId> {
    match *memory {
        MemoryRegion::Tensor(p) => Some(p),
        MemoryRegion::PerLane(MemoryAddress::Global { addr, .. }, _)
        | MemoryRegion::Global(addr, _) => pointers.word(addr, 0).map(|word| word.param),
        _ => None,
    }
}

/// Returns the parameters through which the kernel may write memory.
pub(crate) fn written_params(cx: &RuleContext) -> Vec<ParamId> {
    accessed_params(cx, cx.ops.iter().flat_map(OpSite::writes))
}

/// Returns the parameters that point to memory that may change while the kernel runs: the kernel
/// writes it, or reads it by strong loads, because other threads may write it.
pub(crate) fn changing_params(cx: &RuleContext) -> Vec<ParamId> {
    let accesses = cx.ops.iter().flat_map(|op| &op.facts.touches);
    accessed_params(cx, accesses.filter(|t| t.access != AccessKind::Read))
}

/// Returns the parameters through which the accesses may reach memory.
fn accessed_params<'a>(
    cx: &RuleContext,
    accesses: impl Iterator<Item = &'a MemoryAccess>,
) -> Vec<ParamId> {
    let pointers = Pointers::of(cx.kernel, &cx.ops);
    let accessed: Vec<_> = accesses
        .filter(|t| is_global(&t.memory))
        .map(|t| param_of(&pointers, &t.memory))
        .collect();
    let all = (0..).map(ParamId).zip(&cx.kernel.params);
    // An access to an address of unknown origin may concern any buffer.
    all.filter(|(id, p)| {
        let is_memory = !matches!(p.kind, ParamKind::Scalar(_));
        is_memory && accessed.iter().any(|a| a.is_none_or(|a| a == *id))
    })
    .map(|(id, _)| id)
    .collect()
}

/// Returns the first write to global memory.
pub(crate) fn first_write(cx: &RuleContext) -> Option<Loc> {
    let writes_global = |op: &&OpSite| op.writes().any(|t| is_global(&t.memory));
    cx.ops.iter().find(writes_global).map(OpSite::loc)
}

/// The threads that have waited on every path to this point.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Waited {
    No,
    /// The lane that every `elect` picks.
    Elected,
    Yes,
}

/// The first access that may run before the wait.
struct EarlyAccess {
    first: Option<(Loc, String)>,
}

impl Dataflow<Act<'_>> for EarlyAccess {
    type State = Waited;

    fn op(&mut self, act: &Act, state: &mut Waited) {
        match act {
            Act::Wait => *state = Waited::Yes,
            Act::Touch(loc, op) if *state != Waited::Yes => {
                self.first.get_or_insert_with(|| (*loc, op.name()));
            }
            Act::Touch(..) => {}
        }
    }

    fn join(&self, state: &mut Waited, other: &Waited) -> bool {
        let changed = other < state;
        *state = (*state).min(*other);
        changed
    }

    fn enter_elect(&self, state: &mut Waited) {
        if *state == Waited::Elected {
            *state = Waited::Yes;
        }
    }

    fn leave_elect(&self, before: &Waited, inside: &mut Waited) {
        *inside = match (before, *inside) {
            (Waited::Yes, _) => Waited::Yes,
            (_, Waited::Yes) => Waited::Elected,
            (before, _) => *before,
        };
    }
}
