//! Forward dataflow analysis over the paths of a role.
//!
//! A role is reduced to the relevant ops in their blocks. A [`Flow`] defines the effect of an op on
//! a state, and the join of two paths. Loops iterate to a fixed point.

use super::{OpSite, RuleContext};
use warpline_ir::{Block, RoleId, StmtKind};

/// One statement, with the relevant part of an op.
pub(super) enum Step<T> {
    Op(T),
    Branch([Vec<Step<T>>; 2]),
    /// One elected lane of each warp, the same one every time.
    Elect(Vec<Step<T>>),
    Loop {
        head: Vec<Step<T>>,
        body: Vec<Step<T>>,
        /// Does the loop always run at least once?
        runs: bool,
    },
}

/// The transfer functions of an analysis.
pub(super) trait Flow<T> {
    /// The facts at one point.
    type State: Clone;

    /// Applies an op to the state.
    fn op(&mut self, op: &T, state: &mut Self::State);

    /// Joins another path into the state; returns whether the state changed.
    fn join(&self, state: &mut Self::State, other: &Self::State) -> bool;

    /// Enters the body of an `elect`.
    fn elect(&self, _state: &mut Self::State) {}

    /// Leaves the body of an `elect`; by default like any branch.
    fn elected(&self, before: &Self::State, inside: &mut Self::State) {
        self.join(inside, before);
    }
}

/// Applies the steps to a state.
pub(super) fn follow<T, F: Flow<T>>(steps: &[Step<T>], flow: &mut F, state: &mut F::State) {
    for step in steps {
        match step {
            Step::Op(op) => flow.op(op, state),
            Step::Branch([then, other]) => {
                let mut or = state.clone();
                follow(then, flow, state);
                follow(other, flow, &mut or);
                flow.join(state, &or);
            }
            Step::Elect(body) => {
                let before = state.clone();
                flow.elect(state);
                follow(body, flow, state);
                flow.elected(&before, state);
            }
            Step::Loop { head, body, runs } => loop {
                let mut inside = state.clone();
                follow(head, flow, &mut inside);
                let left = inside.clone();
                follow(body, flow, &mut inside);
                if !flow.join(state, &inside) {
                    // A loop that always runs is left after an iteration.
                    *state = if *runs { inside } else { left };
                    break;
                }
            },
        }
    }
}

impl<'k> RuleContext<'k> {
    /// Returns the statements of a role, with the prologue and the epilogue, reduced to the results
    /// of `read`. Empty blocks are omitted.
    pub(super) fn steps<T>(
        &self,
        role: RoleId,
        read: &mut impl FnMut(&OpSite<'k>) -> Option<T>,
    ) -> Vec<Step<T>> {
        let kernel = self.kernel;
        let body = &kernel.roles[role.index()].body;
        let mut ops = self.ops_of(role);
        let mut next = || ops.next().and_then(&mut *read);
        let mut steps = Vec::new();
        for block in [&kernel.prologue, body, &kernel.epilogue] {
            steps.extend(part(block, &mut next));
        }
        steps
    }

    /// Returns the ops that the threads of a role run, in program order.
    pub(super) fn ops_of(&self, role: RoleId) -> impl Iterator<Item = &OpSite<'k>> {
        let mine = move |op: &&OpSite| op.site.role.is_none_or(|r| r == role);
        self.ops.iter().filter(mine)
    }
}

/// Returns the steps of a block; `next` returns the relevant part of the next op.
fn part<T>(block: &Block, next: &mut impl FnMut() -> Option<T>) -> Vec<Step<T>> {
    let mut steps = Vec::new();
    for s in &block.0 {
        match &s.kind {
            StmtKind::Op(_) => steps.extend(next().map(Step::Op)),
            StmtKind::If { then, other, .. } => {
                let both = [then, other].map(|b| part(b, next));
                if both.iter().any(|b| !b.is_empty()) {
                    steps.push(Step::Branch(both));
                }
            }
            StmtKind::Elect { body } => {
                let body = part(body, next);
                if !body.is_empty() {
                    steps.push(Step::Elect(body));
                }
            }
            StmtKind::For { from, to, body, .. } => {
                let body = part(body, next);
                let runs = from.as_imm().zip(to.as_imm()).is_some_and(|(a, b)| a < b);
                if !body.is_empty() {
                    let head = Vec::new();
                    steps.push(Step::Loop { head, body, runs });
                }
            }
            StmtKind::While { head, body, .. } => {
                let [head, body] = [head, body].map(|b| part(b, next));
                if !(head.is_empty() && body.is_empty()) {
                    let runs = false;
                    steps.push(Step::Loop { head, body, runs });
                }
            }
        }
    }
    steps
}
