//! R16, dependent launch (PDL): no access to global memory before the preceding grids end.
//!
//! A grid of a dependent launch shares its buffers with a grid that still runs. Every thread that
//! accesses global memory first runs `wait_prerequisites`, on every path. A prefetch is allowed
//! before it, and so is a read of memory that no preceding grid writes ([`Param::pdl_safe`]). The
//! plan, which knows all grids, checks that declaration with `rules::written_params`.

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
    let waits = |op: &OpSite| matches!(op.op, Op::WaitPrerequisites(_));
    // The runtime does not start a kernel without a wait as a dependent launch.
    if cx.ops.iter().any(waits) {
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
            .cause("a dependent launch starts while preceding grids still run, and this role does not wait for them on every path");
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
    let at = matches!(m, MemoryRegion::PerLane(MemoryAddress::Global { .. }, _));
    at || matches!(m, MemoryRegion::Tensor(_) | MemoryRegion::Global(..))
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

/// Returns the parameters whose memory a kernel may write.
pub(crate) fn writes(cx: &RuleContext) -> Vec<ParamId> {
    let pointers = Pointers::of(cx.kernel, &cx.ops);
    let touches = cx.ops.iter().flat_map(|op| &op.facts.touches);
    let written: Vec<_> = touches
        .filter(|t| t.access != AccessKind::Read && is_global(&t.memory))
        .map(|t| param_of(&pointers, &t.memory))
        .collect();
    let all = (0..).map(ParamId).zip(&cx.kernel.params);
    // A write to an address of unknown origin may concern any buffer.
    all.filter(|(id, p)| {
        let memory = !matches!(p.kind, ParamKind::Scalar(_));
        memory && written.iter().any(|w| w.is_none_or(|w| w == *id))
    })
    .map(|(id, _)| id)
    .collect()
}

/// Returns the first write to global memory.
pub(crate) fn first_write(cx: &RuleContext) -> Option<Loc> {
    let is_load = |op: &OpSite| matches!(op.op, Op::StrongLoad(_));
    let writes = |op: &&OpSite| {
        let mut touches = op.facts.touches.iter();
        touches.any(|t| t.access != AccessKind::Read && is_global(&t.memory)) && !is_load(op)
    };
    cx.ops.iter().find(writes).map(OpSite::loc)
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
