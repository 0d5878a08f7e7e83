//! What flows through a role, along every way at once.
//!
//! A role is brought down to the ops that matter, in the blocks they stand in.
//! A [`Flow`] says what such an op makes of a state, and what two ways come to
//! where they meet; loops go round until nothing changes.

use super::{Case, OpSite};
use warpline_ir::{Block, RoleId, StmtKind};

/// One statement, with what matters of an op.
pub(super) enum Step<T> {
    Op(T),
    Branch([Vec<Step<T>>; 2]),
    /// The same lane of each warp, every time.
    Elect(Vec<Step<T>>),
    Loop {
        head: Vec<Step<T>>,
        body: Vec<Step<T>>,
        /// Does it surely run at least once?
        runs: bool,
    },
}

/// How a state changes on the way.
pub(super) trait Flow<T> {
    /// What is known at one point.
    type State: Clone;

    /// An op changes the state.
    fn op(&mut self, op: &T, state: &mut Self::State);

    /// Adds another way to the same point; says whether that changed anything.
    fn join(&self, state: &mut Self::State, other: &Self::State) -> bool;

    /// What holds for the lane that an `elect` picks.
    fn elect(&self, _state: &mut Self::State) {}

    /// What holds behind an `elect`: by default, as behind any branch.
    fn elected(&self, before: &Self::State, inside: &mut Self::State) {
        self.join(inside, before);
    }
}

/// Follows the steps from a state to the one behind them.
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
                    // A loop that surely runs is left behind a round.
                    *state = if *runs { inside } else { left };
                    break;
                }
            },
        }
    }
}

impl<'k> Case<'k> {
    /// What a role's threads run, prologue and epilogue too, brought down to
    /// what `read` gives for an op. Blocks with nothing in them are left out.
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

    /// The ops that a role's threads run, in program order.
    pub(super) fn ops_of(&self, role: RoleId) -> impl Iterator<Item = &OpSite<'k>> {
        let mine = move |op: &&OpSite| op.site.role.is_none_or(|r| r == role);
        self.ops.iter().filter(mine)
    }
}

/// The steps of a block; `next` gives what matters of the next op.
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
