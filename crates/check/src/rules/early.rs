//! R16, dependent launch: nothing is read or written before the grids before are done.
//!
//! A grid that may start early shares its buffers with one that still runs.
//! Every thread that touches global memory runs `wait_prerequisites` first, on
//! every way that leads there; a prefetch changes nothing and is free.

use super::flow::{Flow, follow};
use super::{Case, OpSite};
use crate::refusal::{Findings, Rule};
use warpline_ir::{At, Loc, Memory, Op, RoleId};

/// The rules of this group.
pub const RULES: &[Rule] = &[WAIT];

const WAIT: Rule = Rule {
    code: "R16.wait",
    holds: "a kernel that may start early waits for the grids before it, in every role, before it touches global memory",
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

/// One op, as far as early starts are concerned.
enum Act<'k> {
    Wait,
    Touch(Loc, &'k Op),
}

fn act<'k>(op: &OpSite<'k>) -> Option<Act<'k>> {
    let global = |m: &Memory| {
        let at = matches!(m, Memory::At(At::Global { .. }, _));
        at || matches!(m, Memory::Tensor(_) | Memory::Global(..))
    };
    match op.op {
        Op::WaitPrerequisites(_) => Some(Act::Wait),
        Op::TensorPrefetchBox(_) => None,
        _ if op.facts.touches.iter().any(|t| global(&t.memory)) => {
            Some(Act::Touch(op.loc(), op.op))
        }
        _ => None,
    }
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
