//! Statements as branches and labels.
//!
//! A `for` is a test, the body, and the test again. A `while` is its head, a test, the body, and a
//! branch back. An `if` branches over the block that it skips. Roles follow each other, and each
//! warp branches to its own. Neither the printer nor this check peels or unrolls loops; ptxas does,
//! after this check.

use super::ProgramAction;
use super::op::actions_of;
use super::terms::Terms;
use crate::action::{Action, ActionKind, SOURCES, TARGET};
use crate::value::OperandValue;
use warpline_check::Uniformity;
use warpline_ir::{Block, Kernel, Loc, Operand, RegId, RoleId, Stmt, StmtKind, Type, Uniform};

/// Returns the actions of all statements.
pub(super) fn actions(kernel: &Kernel) -> Vec<ProgramAction<'_>> {
    let mut flow = Flow {
        terms: Terms { kernel },
        uniformity: Uniformity::of(kernel),
        actions: Vec::new(),
        at: None,
        role: None,
        elected: false,
        labels: Vec::new(),
        placed: 0,
        branches: Vec::new(),
    };
    flow.block(&kernel.prologue);
    flow.roles(kernel);
    flow.block(&kernel.epilogue);
    flow.emit(Action::new(ActionKind::Return));
    flow.finish()
}

/// A label, which may be placed later.
#[derive(Clone, Copy)]
struct Label(usize);

struct Flow<'a> {
    terms: Terms<'a>,
    uniformity: Uniformity,
    actions: Vec<ProgramAction<'a>>,
    at: Option<Loc>,
    role: Option<RoleId>,
    /// Whether the code is inside an `elect`.
    elected: bool,
    /// The number of each placed label.
    labels: Vec<u64>,
    placed: u64,
    /// Branches, their target labels, and the number of labels placed before them.
    branches: Vec<(usize, Label, u64)>,
}

impl<'a> Flow<'a> {
    fn emit(&mut self, action: Action<'a>) {
        self.actions.push(ProgramAction {
            action,
            at: self.at,
            role: self.role,
        });
    }

    fn label(&mut self) -> Label {
        self.labels.push(0);
        Label(self.labels.len() - 1)
    }

    fn place(&mut self, label: Label) {
        self.labels[label.0] = self.placed;
        self.placed += 1;
        self.emit(Action::new(ActionKind::Label));
    }

    fn branch(&mut self, when: OperandValue<'a>, to: Label, whole_warp: bool) {
        self.branches.push((self.actions.len(), to, self.placed));
        let action = Action::new(ActionKind::Branch)
            .with("condition", when)
            .with(TARGET, OperandValue::Absent)
            .with("uniform", OperandValue::yes(whole_warp));
        self.emit(action);
    }

    /// Resolves the branch targets and returns the actions.
    fn finish(mut self) -> Vec<ProgramAction<'a>> {
        for (branch, to, before) in self.branches {
            let distance = self.labels[to.0].wrapping_sub(before);
            self.actions[branch].action.facts[1].1 = OperandValue::Number(distance);
        }
        self.actions
    }

    fn roles(&mut self, kernel: &'a Kernel) {
        let end = self.label();
        let mut roles = kernel.roles.iter().enumerate().peekable();
        while let Some((i, role)) = roles.next() {
            let more = roles.peek().is_some();
            let next = self.label();
            (self.at, self.role) = (Some(role.loc), Some(RoleId(i as u32)));
            if more {
                let last = role.first_warp + role.warps;
                let later = OperandValue::Computed("setp.ge.u32", vec![warp(), last.into()]);
                self.branch(later, next, true);
            }
            self.block(&role.body);
            if more {
                self.branch(OperandValue::Name("always"), end, true);
                self.place(next);
            }
        }
        if kernel.roles.len() > 1 {
            self.place(end);
        }
        self.role = None;
    }

    fn block(&mut self, block: &'a Block) {
        for stmt in &block.0 {
            self.at = Some(stmt.loc);
            match &stmt.kind {
                StmtKind::Op(op) => {
                    for action in actions_of(self.terms, op) {
                        self.emit(action);
                    }
                }
                StmtKind::If { cond, then, other } => self.choose(*cond, then, other),
                StmtKind::For {
                    var,
                    from,
                    to,
                    step,
                    body,
                    unroll,
                } => self.count(stmt, *var, [*from, *to, *step], body, *unroll),
                StmtKind::While { head, cond, body } => self.repeat(stmt, head, *cond, body),
                StmtKind::Elect { body } => self.elect(body),
            }
        }
    }

    /// Whether a condition is uniform in a warp.
    fn is_warp_uniform(&self, uniform: Uniform) -> bool {
        uniform >= Uniform::Warp
    }

    fn choose(&mut self, cond: RegId, then: &'a Block, other: &'a Block) {
        let (otherwise, end) = (self.label(), self.label());
        let uniform = self.is_warp_uniform(self.uniformity.reg(cond));
        let no = not(self.terms.reg(cond));
        if other.0.is_empty() {
            self.branch(no, end, uniform);
            self.block(then);
        } else {
            self.branch(no, otherwise, uniform);
            self.block(then);
            self.branch(OperandValue::Name("always"), end, true);
            self.place(otherwise);
            self.block(other);
        }
        self.place(end);
    }

    fn count(
        &mut self,
        stmt: &'a Stmt,
        var: RegId,
        [from, to, step]: [Operand; 3],
        body: &'a Block,
        unroll: Option<u32>,
    ) {
        let (again, end) = (self.label(), self.label());
        let uniform = self.is_warp_uniform(self.uniformity.inside(stmt));
        let ty = self.terms.kernel.ty(var);
        let value = |o| self.terms.operand(o, ty);
        let (from, to, step) = (value(from), value(to), value(step));
        let var = self.terms.reg(var);
        let below = match ty {
            Type::I32 => "setp.lt.s32",
            _ => "setp.lt.u32",
        };
        let go = OperandValue::Computed(below, vec![var.clone(), to]);
        self.emit(set(var.clone(), vec![from]));
        self.branch(not(go.clone()), end, uniform);
        self.place(again);
        if unroll == Some(1) {
            self.emit(Action::new(ActionKind::NoUnroll));
        }
        self.block(body);
        self.at = Some(stmt.loc);
        self.emit(set(var.clone(), vec![var, step]));
        self.branch(go, again, uniform);
        self.place(end);
    }

    fn repeat(&mut self, stmt: &'a Stmt, head: &'a Block, cond: RegId, body: &'a Block) {
        let (again, end) = (self.label(), self.label());
        let uniform = self.is_warp_uniform(self.uniformity.reg(cond));
        self.place(again);
        self.block(head);
        self.at = Some(stmt.loc);
        self.branch(not(self.terms.reg(cond)), end, uniform);
        self.block(body);
        self.at = Some(stmt.loc);
        self.branch(OperandValue::Name("always"), again, true);
        self.place(end);
    }

    fn elect(&mut self, body: &'a Block) {
        // A nested elect selects the same lane.
        if self.elected {
            return self.block(body);
        }
        let all = OperandValue::Number(u32::MAX.into());
        let end = self.label();
        self.emit(Action::new(ActionKind::Elect).with("lane mask", all.clone()));
        self.branch(
            not(OperandValue::Computed("elect.sync", vec![all])),
            end,
            false,
        );
        self.elected = true;
        self.block(body);
        self.elected = false;
        self.place(end);
    }
}

/// Returns the action of a register write.
pub(super) fn set<'a>(register: OperandValue<'a>, from: Vec<OperandValue<'a>>) -> Action<'a> {
    Action::new(ActionKind::Set)
        .with("register", register)
        .with(SOURCES, OperandValue::List(from))
}

fn not(value: OperandValue<'_>) -> OperandValue<'_> {
    OperandValue::Computed("not", vec![value])
}

/// Returns the warp index, broadcast from lane 0.
fn warp<'a>() -> OperandValue<'a> {
    let warp = OperandValue::Computed(
        "shr.u32",
        vec![OperandValue::Name("%tid.x"), OperandValue::Number(5)],
    );
    let all = OperandValue::Number(u32::MAX.into());
    let lanes = vec![warp, OperandValue::Number(0), OperandValue::Number(31), all];
    OperandValue::Computed("shfl.sync.idx.b32", lanes)
}
