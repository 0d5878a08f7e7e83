//! R16, dependent launch: nothing is read or written before the grids before are done.
//!
//! A grid that may start early shares its buffers with one that still runs.
//! Every thread that touches global memory runs `wait_prerequisites` first, on
//! every way that leads there; a prefetch changes nothing and is free, and so
//! is a read of what the grids before leave alone ([`Param::settled`]). That
//! they do is for those to say who have all of them: `rules::writes`.

use super::flow::{Flow, follow};
use super::pointers::Pointers;
use super::{Case, OpSite};
use crate::refusal::{Findings, Rule};
#[cfg(doc)]
use warpline_ir::Param;
use warpline_ir::{Access, At, Kernel, Loc, Memory, Op, ParamId, ParamKind, RoleId, Touch};

/// The rules of this group.
pub const RULES: &[Rule] = &[WAIT, SETTLED];

const WAIT: Rule = Rule {
    code: "R16.wait",
    holds: "a kernel that may start early waits for the grids before it, in every role, before it touches global memory",
};

const SETTLED: Rule = Rule {
    code: "R16.settled",
    holds: "what a kernel that may start early reads before it has waited is not written by a grid that may still run",
};

pub(crate) fn judge<'k>(case: &Case<'k>, found: &mut Findings<'k>) {
    let waits = |op: &OpSite| matches!(op.op, Op::WaitPrerequisites(_));
    // A kernel without a wait does not start early: who starts it sees to that.
    if case.ops.iter().any(waits) {
        judge_early(case, found);
    }
}

/// Judges a kernel that may start early, whether it waits or not.
pub(crate) fn judge_early<'k>(case: &Case<'k>, found: &mut Findings<'k>) {
    let pointers = Pointers::of(case.kernel, &case.ops);
    let settled = |t: &Touch| {
        let param = param(&pointers, &t.memory);
        t.access == Access::Read && param.is_some_and(|p| case.kernel.param(p).settled)
    };
    let mut act = |op: &OpSite<'k>| match op.op {
        Op::WaitPrerequisites(_) => Some(Act::Wait),
        Op::TensorPrefetchBox(_) => None,
        _ => {
            let mut touches = op.facts.touches.iter();
            touches
                .any(|t| is_global(&t.memory) && !settled(t))
                .then(|| Act::Touch(op.loc(), op.op))
        }
    };
    for i in 0..case.kernel.roles.len() {
        let role = RoleId(i as u32);
        let steps = case.steps(role, &mut act);
        let mut early = Early { first: None };
        follow(&steps, &mut early, &mut Waited::No);
        if let Some((loc, name)) = early.first {
            let text = format!(
                "a kernel that may start early waits for the grids before it, in every role, before it touches global memory; {name} may come before wait_prerequisites"
            );
            found.refuse(&WAIT, loc, Some(role), text);
        }
    }
}

/// Judges a kernel that may start early beside grids that write behind these of its parameters.
pub(crate) fn judge_settled<'k>(kernel: &'k Kernel, written: &[ParamId], found: &mut Findings<'k>) {
    for param in written.iter().map(|&p| kernel.param(p)) {
        if param.settled {
            let text = format!(
                "what a kernel that may start early reads before it has waited is not written by a grid that may still run; {} is settled, and the step before writes to the same buffer",
                param.name
            );
            found.refuse(&SETTLED, param.loc, None, text);
        }
    }
}

/// One op, as far as early starts are concerned.
enum Act<'k> {
    Wait,
    Touch(Loc, &'k Op),
}

fn is_global(m: &Memory) -> bool {
    let at = matches!(m, Memory::At(At::Global { .. }, _));
    at || matches!(m, Memory::Tensor(_) | Memory::Global(..))
}

/// The parameter behind global memory, where it is known.
fn param(pointers: &Pointers, memory: &Memory) -> Option<ParamId> {
    match *memory {
        Memory::Tensor(p) => Some(p),
        Memory::At(At::Global { addr, .. }, _) | Memory::Global(addr, _) => {
            pointers.at(addr, 0).map(|spot| spot.param)
        }
        _ => None,
    }
}

/// The parameters behind which a kernel may write.
pub(crate) fn writes(case: &Case) -> Vec<ParamId> {
    let pointers = Pointers::of(case.kernel, &case.ops);
    let touches = case.ops.iter().flat_map(|op| &op.facts.touches);
    let written: Vec<_> = touches
        .filter(|t| t.access != Access::Read && is_global(&t.memory))
        .map(|t| param(&pointers, &t.memory))
        .collect();
    let all = (0..).map(ParamId).zip(&case.kernel.params);
    // Where it writes to an address of unknown origin, it may be any of them.
    all.filter(|(id, p)| {
        let memory = !matches!(p.kind, ParamKind::Scalar(_));
        memory && written.iter().any(|w| w.is_none_or(|w| w == *id))
    })
    .map(|(id, _)| id)
    .collect()
}

/// Where a kernel writes to global memory first.
pub(crate) fn first_write(case: &Case) -> Option<Loc> {
    let is_load = |op: &OpSite| matches!(op.op, Op::StrongLoad(_));
    let writes = |op: &&OpSite| {
        let mut touches = op.facts.touches.iter();
        touches.any(|t| t.access != Access::Read && is_global(&t.memory)) && !is_load(op)
    };
    case.ops.iter().find(writes).map(OpSite::loc)
}

/// Who has waited, on every way here.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Waited {
    No,
    /// The lane that every `elect` picks.
    Elected,
    Yes,
}

/// The first access that may come too early.
struct Early {
    first: Option<(Loc, String)>,
}

impl Flow<Act<'_>> for Early {
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

    fn elect(&self, state: &mut Waited) {
        if *state == Waited::Elected {
            *state = Waited::Yes;
        }
    }

    fn elected(&self, before: &Waited, inside: &mut Waited) {
        *inside = match (before, *inside) {
            (Waited::Yes, _) => Waited::Yes,
            (_, Waited::Yes) => Waited::Elected,
            (before, _) => *before,
        };
    }
}
