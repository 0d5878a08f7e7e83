//! Forward dataflow analysis over the paths of a role.
//!
//! [`RuleContext::steps`] reduces a role to the ops that matter for one analysis, in their branches
//! and loops. A [`Dataflow`] defines the effect of an op on a state, and the join of the states of
//! two paths. [`run_dataflow`] applies them in program order and iterates each loop to a fixed
//! point.

use super::{OpSite, RuleContext};
use warpline_ir::{Block, RoleId, StmtKind};

/// One statement of a reduced role. `T` is the part of an op that matters for the analysis.
pub(super) enum Step<T> {
    Op(T),
    /// The arms `then` and `else`.
    Branch([Vec<Step<T>>; 2]),
    /// The body of an `elect`. Every `elect` of a warp picks the same lane.
    Elect(Vec<Step<T>>),
    Loop {
        head: Vec<Step<T>>,
        body: Vec<Step<T>>,
        /// Does the loop always run at least one iteration?
        always_runs: bool,
    },
}

/// The transfer functions of an analysis.
pub(super) trait Dataflow<T> {
    /// The facts that hold at one point of the role.
    type State: Clone;

    /// Applies an op to the state.
    fn op(&mut self, op: &T, state: &mut Self::State);

    /// Joins the state of another path into this one; returns whether this one changed.
    fn join(&self, state: &mut Self::State, other: &Self::State) -> bool;

    /// Enters the body of an `elect`.
    fn enter_elect(&self, _state: &mut Self::State) {}

    /// Leaves the body of an `elect`; by default joins as a branch does.
    fn leave_elect(&self, before: &Self::State, inside: &mut Self::State) {
        self.join(inside, before);
    }
}

/// Applies the steps to a state, which ends as the state after the last step.
pub(super) fn run_dataflow<T, F: Dataflow<T>>(
    steps: &[Step<T>],
    flow: &mut F,
    state: &mut F::State,
) {
    for step in steps {
        match step {
            Step::Op(op) => flow.op(op, state),
            Step::Branch([then, other]) => {
                let mut after_else = state.clone();
                run_dataflow(then, flow, state);
                run_dataflow(other, flow, &mut after_else);
                flow.join(state, &after_else);
            }
            Step::Elect(body) => {
                let before = state.clone();
                flow.enter_elect(state);
                run_dataflow(body, flow, state);
                flow.leave_elect(&before, state);
            }
            // `state` is the state before an iteration, joined over all iterations so far.
            Step::Loop {
                head,
                body,
                always_runs,
            } => loop {
                let mut after_body = state.clone();
                run_dataflow(head, flow, &mut after_body);
                let after_head = after_body.clone();
                run_dataflow(body, flow, &mut after_body);
                if !flow.join(state, &after_body) {
                    // A loop that always runs ends after an iteration, any other after its head.
                    *state = if *always_runs { after_body } else { after_head };
                    break;
                }
            },
        }
    }
}

impl<'k> RuleContext<'k> {
    /// Returns the statements of a role, with the prologue and the epilogue, reduced to the ops for
    /// which `select` returns a value. Empty blocks are omitted.
    pub(super) fn steps<T>(
        &self,
        role: RoleId,
        select: &mut impl FnMut(&OpSite<'k>) -> Option<T>,
    ) -> Vec<Step<T>> {
        let kernel = self.kernel;
        let body = &kernel.roles[role.index()].body;
        let mut ops = self.ops_of(role);
        let mut next = || ops.next().and_then(&mut *select);
        let mut steps = Vec::new();
        for block in [&kernel.prologue, body, &kernel.epilogue] {
            steps.extend(block_steps(block, &mut next));
        }
        steps
    }

    /// Returns the ops that the threads of a role run, in program order.
    pub(super) fn ops_of(&self, role: RoleId) -> impl Iterator<Item = &OpSite<'k>> {
        let runs = move |op: &&OpSite| op.site.role.is_none_or(|r| r == role);
        self.ops.iter().filter(runs)
    }
}

/// Returns the steps of a block; `next` returns the part of the next op that matters, if any.
fn block_steps<T>(block: &Block, next: &mut impl FnMut() -> Option<T>) -> Vec<Step<T>> {
    let mut steps = Vec::new();
    for s in &block.0 {
        match &s.kind {
            StmtKind::Op(_) => steps.extend(next().map(Step::Op)),
            StmtKind::If { then, other, .. } => {
                let arms = [then, other].map(|b| block_steps(b, next));
                if arms.iter().any(|arm| !arm.is_empty()) {
                    steps.push(Step::Branch(arms));
                }
            }
            StmtKind::Elect { body } => {
                let body = block_steps(body, next);
                if !body.is_empty() {
                    steps.push(Step::Elect(body));
                }
            }
            StmtKind::For { from, to, body, .. } => {
                let body = block_steps(body, next);
                let always_runs = from.as_imm().zip(to.as_imm()).is_some_and(|(a, b)| a < b);
                if !body.is_empty() {
                    steps.push(Step::Loop {
                        head: Vec::new(),
                        body,
                        always_runs,
                    });
                }
            }
            StmtKind::While { head, body, .. } => {
                let [head, body] = [head, body].map(|b| block_steps(b, next));
                if !(head.is_empty() && body.is_empty()) {
                    steps.push(Step::Loop {
                        head,
                        body,
                        always_runs: false,
                    });
                }
            }
        }
    }
    steps
}
