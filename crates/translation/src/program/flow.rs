//! Statements as branches and labels.
//!
//! A `for` is a test, the body, and the test again. A `while` is its head, a test, the body, and a
//! branch back. An `if` branches over the block that it skips. The roles follow each other in the
//! text, and each warp branches to its role. Neither the printer nor this check peels or unrolls
//! loops; ptxas does so later.

use super::ProgramAction;
use super::op::actions_of;
use super::operand_converter::OperandConverter;
use crate::action::{Action, ActionKind, SOURCES, TARGET};
use crate::value::OperandValue;
use warpline_check::Uniformity;
use warpline_ir::{Block, Kernel, Loc, Operand, RegId, RoleId, Stmt, StmtKind, Type, Uniform};

/// Returns the actions of all statements.
pub(super) fn actions(kernel: &Kernel) -> Vec<ProgramAction<'_>> {
    let mut flow = Flow {
        converter: OperandConverter { kernel },
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
    converter: OperandConverter<'a>,
    uniformity: Uniformity,
    actions: Vec<ProgramAction<'a>>,
    at: Option<Loc>,
    role: Option<RoleId>,
    /// Whether the code is inside an `elect`.
    elected: bool,
    /// The position of each placed label among the placed labels.
    labels: Vec<u64>,
    /// The number of labels placed so far.
    placed: u64,
    /// For each branch: its index in `actions`, its target, and the number of labels placed before
    /// it.
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

    fn new_label(&mut self) -> Label {
        self.labels.push(0);
        Label(self.labels.len() - 1)
    }

    fn place_label(&mut self, label: Label) {
        self.labels[label.0] = self.placed;
        self.placed += 1;
        self.emit(Action::new(ActionKind::Label));
    }

    fn branch(&mut self, condition: OperandValue<'a>, to: Label, uniform: bool) {
        self.branches.push((self.actions.len(), to, self.placed));
        let action = Action::new(ActionKind::Branch)
            .with("condition", condition)
            .with(TARGET, OperandValue::Absent)
            .with("uniform", OperandValue::flag(uniform));
        self.emit(action);
    }

    /// Resolves the branch targets and returns the actions.
    fn finish(mut self) -> Vec<ProgramAction<'a>> {
        for (branch, to, placed_before) in self.branches {
            let distance = self.labels[to.0].wrapping_sub(placed_before);
            self.actions[branch].action.facts[1].1 = OperandValue::Number(distance);
        }
        self.actions
    }

    fn roles(&mut self, kernel: &'a Kernel) {
        let end = self.new_label();
        let mut roles = kernel.roles.iter().enumerate().peekable();
        while let Some((i, role)) = roles.next() {
            let has_next = roles.peek().is_some();
            let next = self.new_label();
            (self.at, self.role) = (Some(role.loc), Some(RoleId(i as u32)));
            if has_next {
                let end_warp = role.first_warp + role.warps;
                let of_later_role =
                    OperandValue::Computed("setp.ge.u32", vec![warp_index(), end_warp.into()]);
                self.branch(of_later_role, next, true);
            }
            self.block(&role.body);
            if has_next {
                self.branch(OperandValue::Name("always"), end, true);
                self.place_label(next);
            }
        }
        if kernel.roles.len() > 1 {
            self.place_label(end);
        }
        self.role = None;
    }

    fn block(&mut self, block: &'a Block) {
        for stmt in &block.0 {
            self.at = Some(stmt.loc);
            match &stmt.kind {
                StmtKind::Op(op) => {
                    for action in actions_of(self.converter, op) {
                        self.emit(action);
                    }
                }
                StmtKind::If { cond, then, other } => self.if_else(*cond, then, other),
                StmtKind::For {
                    var,
                    from,
                    to,
                    step,
                    body,
                    unroll,
                } => self.for_loop(stmt, *var, [*from, *to, *step], body, *unroll),
                StmtKind::While { head, cond, body } => self.while_loop(stmt, head, *cond, body),
                StmtKind::Elect { body } => self.elect(body),
            }
        }
    }

    /// Returns whether a condition is uniform in a warp.
    fn is_warp_uniform(&self, uniform: Uniform) -> bool {
        uniform >= Uniform::Warp
    }

    fn if_else(&mut self, cond: RegId, then: &'a Block, other: &'a Block) {
        let (otherwise, end) = (self.new_label(), self.new_label());
        let uniform = self.is_warp_uniform(self.uniformity.reg(cond));
        let not_taken = not(self.converter.reg(cond));
        if other.0.is_empty() {
            self.branch(not_taken, end, uniform);
            self.block(then);
        } else {
            self.branch(not_taken, otherwise, uniform);
            self.block(then);
            self.branch(OperandValue::Name("always"), end, true);
            self.place_label(otherwise);
            self.block(other);
        }
        self.place_label(end);
    }

    fn for_loop(
        &mut self,
        stmt: &'a Stmt,
        var: RegId,
        [from, to, step]: [Operand; 3],
        body: &'a Block,
        unroll: Option<u32>,
    ) {
        let (again, end) = (self.new_label(), self.new_label());
        let uniform = self.is_warp_uniform(self.uniformity.inside(stmt));
        let ty = self.converter.kernel.ty(var);
        let value = |o| self.converter.operand(o, ty);
        let (from, to, step) = (value(from), value(to), value(step));
        let var = self.converter.reg(var);
        let less_than = match ty {
            Type::I32 => "setp.lt.s32",
            _ => "setp.lt.u32",
        };
        let in_range = OperandValue::Computed(less_than, vec![var.clone(), to]);
        self.emit(set(var.clone(), vec![from]));
        self.branch(not(in_range.clone()), end, uniform);
        self.place_label(again);
        if unroll == Some(1) {
            self.emit(Action::new(ActionKind::NoUnroll));
        }
        self.block(body);
        self.at = Some(stmt.loc);
        self.emit(set(var.clone(), vec![var, step]));
        self.branch(in_range, again, uniform);
        self.place_label(end);
    }

    fn while_loop(&mut self, stmt: &'a Stmt, head: &'a Block, cond: RegId, body: &'a Block) {
        let (again, end) = (self.new_label(), self.new_label());
        let uniform = self.is_warp_uniform(self.uniformity.reg(cond));
        self.place_label(again);
        self.block(head);
        self.at = Some(stmt.loc);
        self.branch(not(self.converter.reg(cond)), end, uniform);
        self.block(body);
        self.at = Some(stmt.loc);
        self.branch(OperandValue::Name("always"), again, true);
        self.place_label(end);
    }

    fn elect(&mut self, body: &'a Block) {
        // A nested elect selects the same lane.
        if self.elected {
            return self.block(body);
        }
        let all_lanes = OperandValue::Number(u32::MAX.into());
        let end = self.new_label();
        self.emit(Action::new(ActionKind::Elect).with("lane mask", all_lanes.clone()));
        self.branch(
            not(OperandValue::Computed("elect.sync", vec![all_lanes])),
            end,
            false,
        );
        self.elected = true;
        self.block(body);
        self.elected = false;
        self.place_label(end);
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
fn warp_index<'a>() -> OperandValue<'a> {
    let warp = OperandValue::Computed(
        "shr.u32",
        vec![OperandValue::Name("%tid.x"), OperandValue::Number(5)],
    );
    let all_lanes = OperandValue::Number(u32::MAX.into());
    let operands = vec![
        warp,
        OperandValue::Number(0),
        OperandValue::Number(31),
        all_lanes,
    ];
    OperandValue::Computed("shfl.sync.idx.b32", operands)
}
