//! Edits of a kernel: statements and their replacements.

use std::ops::Range;
use warpline_ir::ops::arith::{Add, Mov};
use warpline_ir::ops::bits::Xor;
use warpline_ir::ops::compare::{Cmp, Select, Setp};
use warpline_ir::ops::special::ReadSpecial;
use warpline_ir::{
    Block, Kernel, Loc, Op, Operand, RegId, RegInfo, RoleId, Special, Stmt, StmtKind, Type,
};

/// The block in which a path starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Root {
    Prologue,
    Role(usize),
    Epilogue,
}

/// A block of a statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arm {
    Then,
    Other,
    Head,
    Body,
}

/// The path to a block: the index and the arm of every enclosing statement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Path {
    pub(crate) root: Root,
    pub(crate) arms: Vec<(usize, Arm)>,
}

impl Path {
    /// Returns the block of a kernel, if the kernel has it.
    fn find<'k>(&self, kernel: &'k mut Kernel) -> Option<&'k mut Block> {
        let mut block = match self.root {
            Root::Prologue => &mut kernel.prologue,
            Root::Role(i) => &mut kernel.roles.get_mut(i)?.body,
            Root::Epilogue => &mut kernel.epilogue,
        };
        for &(i, arm) in &self.arms {
            block = match (&mut block.0.get_mut(i)?.kind, arm) {
                (StmtKind::If { then, .. }, Arm::Then) => then,
                (StmtKind::If { other, .. }, Arm::Other) => other,
                (StmtKind::While { head, .. }, Arm::Head) => head,
                (StmtKind::While { body, .. }, Arm::Body)
                | (StmtKind::For { body, .. }, Arm::Body)
                | (StmtKind::Elect { body }, Arm::Body) => body,
                _ => return None,
            };
        }
        Some(block)
    }
}

/// A range of statements of a block, and its replacement.
#[derive(Clone, Debug)]
pub(crate) struct Splice {
    pub(crate) path: Path,
    pub(crate) range: Range<usize>,
    /// The replacement.
    pub(crate) stmts: Vec<Stmt>,
}

/// An edit of a kernel, and its description.
#[derive(Clone, Debug)]
pub(crate) struct Edit {
    pub(crate) loc: Loc,
    pub(crate) text: String,
    /// New registers, after those of the kernel.
    pub(crate) regs: Vec<RegInfo>,
    /// Applied in this order: inner blocks first, because outer splices move them.
    pub(crate) splices: Vec<Splice>,
}

impl Edit {
    /// Returns the edited kernel.
    pub(crate) fn apply(&self, kernel: &Kernel) -> Kernel {
        let mut kernel = kernel.clone();
        kernel.regs.extend(self.regs.iter().cloned());
        for Splice { path, range, stmts } in &self.splices {
            if let Some(block) = path.find(&mut kernel) {
                block.0.splice(range.clone(), stmts.iter().cloned());
            }
        }
        kernel
    }
}

/// A list of new statements, with new registers of one role, at one source location.
pub(crate) struct Draft {
    /// The index of the first new register.
    first_reg: usize,
    role: Option<RoleId>,
    loc: Loc,
    pub(crate) regs: Vec<RegInfo>,
    pub(crate) stmts: Vec<Stmt>,
}

impl Draft {
    pub(crate) fn new(kernel: &Kernel, role: Option<RoleId>, loc: Loc) -> Self {
        Self {
            first_reg: kernel.regs.len(),
            role,
            loc,
            regs: Vec::new(),
            stmts: Vec::new(),
        }
    }

    pub(crate) fn reg(&mut self, ty: Type) -> RegId {
        let (role, loc) = (self.role, self.loc);
        self.regs.push(RegInfo { ty, role, loc });
        RegId((self.first_reg + self.regs.len() - 1) as u32)
    }

    pub(crate) fn push(&mut self, kind: StmtKind) {
        let loc = self.loc;
        self.stmts.push(Stmt { kind, loc });
    }

    pub(crate) fn op(&mut self, op: impl Into<Op>) {
        self.push(StmtKind::Op(op.into()));
    }

    pub(crate) fn if_(&mut self, cond: RegId, then: Vec<Stmt>) {
        let (then, other) = (Block(then), Block::default());
        self.push(StmtKind::If { cond, then, other });
    }

    pub(crate) fn elect(&mut self, body: Vec<Stmt>) {
        let body = Block(body);
        self.push(StmtKind::Elect { body });
    }

    pub(crate) fn set_pred(&mut self, dst: RegId, value: bool) {
        let (ty, src) = (Type::Pred, Operand::imm(value));
        self.op(Mov { ty, dst, src });
    }

    pub(crate) fn read_special(&mut self, which: Special) -> RegId {
        let dst = self.reg(Type::U32);
        self.op(ReadSpecial { dst, which });
        dst
    }

    /// Adds a constant; folds constants. Add the two's complement to subtract.
    pub(crate) fn add(&mut self, a: Operand, b: u32) -> Operand {
        if let Operand::Imm(x) = a {
            return Operand::imm((x as u32).wrapping_add(b));
        }
        let (ty, dst, b) = (Type::U32, self.reg(Type::U32), Operand::imm(b));
        self.op(Add { ty, dst, a, b });
        dst.into()
    }

    /// Returns the other parity.
    pub(crate) fn flip_parity(&mut self, a: Operand) -> Operand {
        if let Operand::Imm(x) = a {
            return Operand::Imm(x ^ 1);
        }
        let (ty, dst, b) = (Type::U32, self.reg(Type::U32), Operand::imm(1u32));
        self.op(Xor { ty, dst, a, b });
        dst.into()
    }

    /// Returns `(a + 1) % len`.
    pub(crate) fn next_stage(&mut self, a: Operand, len: u32) -> Operand {
        if let Operand::Imm(x) = a {
            return Operand::imm((x as u32).wrapping_add(1) % len.max(1));
        }
        let (ty, next) = (Type::U32, self.add(a, 1));
        let last = self.compare(Cmp::Eq, next, Operand::imm(len));
        let dst = self.reg(ty);
        let (cond, a, b) = (last.into(), Operand::imm(0u32), next);
        self.op(Select {
            ty,
            dst,
            cond,
            a,
            b,
        });
        dst.into()
    }

    pub(crate) fn compare(&mut self, cmp: Cmp, a: Operand, b: Operand) -> RegId {
        let (ty, dst) = (Type::U32, self.reg(Type::Pred));
        self.op(Setp { cmp, ty, dst, a, b });
        dst
    }
}
