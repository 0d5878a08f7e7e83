//! Emits statements into a kernel that is already built.

use warpline_ir::ops::arith::{Mad, Min, Mov, Sub};
use warpline_ir::ops::compare::{Cmp, PredAnd, PredNot, PredOr, Setp};
use warpline_ir::ops::special::{ReadParam, ReadSpecial};
use warpline_ir::ops::warp::{Vote, VoteMode};
use warpline_ir::{
    Block, Loc, Op, Operand, ParamId, RegId, RegInfo, RoleId, Special, Stmt, StmtKind, Type,
};

/// All lanes of a warp.
pub(crate) const ALL_LANES: Operand = Operand::Imm(u32::MAX as u64);

/// An emitter of statements with fresh registers of one role, at one source location.
pub(crate) struct Emitter<'a> {
    regs: &'a mut Vec<RegInfo>,
    role: Option<RoleId>,
    loc: Loc,
    out: Vec<Stmt>,
}

impl<'a> Emitter<'a> {
    pub(crate) fn new(regs: &'a mut Vec<RegInfo>, role: Option<RoleId>, loc: Loc) -> Self {
        Self {
            regs,
            role,
            loc,
            out: Vec::new(),
        }
    }

    /// Returns the emitted statements.
    pub(crate) fn finish(self) -> Vec<Stmt> {
        self.out
    }

    pub(crate) fn reg(&mut self, ty: Type) -> RegId {
        let (role, loc) = (self.role, self.loc);
        self.regs.push(RegInfo { ty, role, loc });
        RegId(self.regs.len() as u32 - 1)
    }

    /// Emits an op with a fresh result register.
    fn value<O: Into<Op>>(&mut self, ty: Type, op: impl FnOnce(RegId) -> O) -> RegId {
        let dst = self.reg(ty);
        self.op(op(dst));
        dst
    }

    pub(crate) fn op(&mut self, op: impl Into<Op>) {
        self.push(StmtKind::Op(op.into()));
    }

    pub(crate) fn push(&mut self, kind: StmtKind) {
        let loc = self.loc;
        self.out.push(Stmt { kind, loc });
    }

    /// Appends existing statements.
    pub(crate) fn append(&mut self, stmts: impl IntoIterator<Item = Stmt>) {
        self.out.extend(stmts);
    }

    /// Collects the statements that `body` emits into a block.
    pub(crate) fn block(&mut self, body: impl FnOnce(&mut Self)) -> Block {
        let outer = std::mem::take(&mut self.out);
        body(self);
        Block(std::mem::replace(&mut self.out, outer))
    }

    pub(crate) fn if_(&mut self, cond: RegId, then: impl FnOnce(&mut Self)) {
        let then = self.block(then);
        let other = Block::default();
        self.push(StmtKind::If { cond, then, other });
    }

    /// Emits a loop that runs `head` while the returned predicate is true.
    pub(crate) fn while_(&mut self, head: impl FnOnce(&mut Self) -> RegId) {
        let outer = std::mem::take(&mut self.out);
        let cond = head(self);
        let head = Block(std::mem::replace(&mut self.out, outer));
        let body = Block::default();
        self.push(StmtKind::While { head, cond, body });
    }

    pub(crate) fn elect(&mut self, body: impl FnOnce(&mut Self)) {
        let body = self.block(body);
        self.push(StmtKind::Elect { body });
    }

    pub(crate) fn mov(&mut self, ty: Type, dst: RegId, src: impl Into<Operand>) {
        let src = src.into();
        self.op(Mov { ty, dst, src });
    }

    /// Emits a predicate that is initially false.
    pub(crate) fn false_pred(&mut self) -> RegId {
        let dst = self.reg(Type::Pred);
        self.mov(Type::Pred, dst, Operand::imm(false));
        dst
    }

    pub(crate) fn special(&mut self, which: Special) -> RegId {
        let ty = match which {
            Special::GlobalTimer => Type::U64,
            _ => Type::U32,
        };
        self.value(ty, |dst| ReadSpecial { dst, which })
    }

    /// Emits a read of a pointer parameter.
    pub(crate) fn read_pointer(&mut self, param: ParamId) -> RegId {
        let ty = Type::U64;
        self.value(ty, |dst| ReadParam { dst, param, ty })
    }

    pub(crate) fn mad(&mut self, a: RegId, b: impl Into<Operand>, c: RegId) -> RegId {
        let (ty, a, b, c) = (Type::U32, a.into(), b.into(), c.into());
        self.value(ty, |dst| Mad { ty, dst, a, b, c })
    }

    pub(crate) fn min(&mut self, a: RegId, b: u32) -> RegId {
        let (ty, a, b) = (Type::U32, a.into(), Operand::imm(b));
        self.value(ty, |dst| Min { ty, dst, a, b })
    }

    /// Emits the predicate that `ns` nanoseconds have passed since `start`.
    pub(crate) fn elapsed(&mut self, start: RegId, ns: u64) -> RegId {
        let ty = Type::U64;
        let now = self.special(Special::GlobalTimer);
        let (a, b) = (now.into(), start.into());
        let elapsed_ns = self.value(ty, |dst| Sub { ty, dst, a, b });
        self.compare(Cmp::Ge, ty, elapsed_ns, Operand::imm(ns))
    }

    pub(crate) fn compare(&mut self, cmp: Cmp, ty: Type, a: RegId, b: Operand) -> RegId {
        let a = a.into();
        self.value(Type::Pred, |dst| Setp { cmp, ty, dst, a, b })
    }

    pub(crate) fn not(&mut self, a: RegId) -> RegId {
        let a = a.into();
        self.value(Type::Pred, |dst| PredNot { dst, a })
    }

    pub(crate) fn or(&mut self, a: RegId, b: RegId) -> RegId {
        let (a, b) = (a.into(), b.into());
        self.value(Type::Pred, |dst| PredOr { dst, a, b })
    }

    pub(crate) fn and(&mut self, a: RegId, b: RegId) -> RegId {
        let (a, b) = (a.into(), b.into());
        self.value(Type::Pred, |dst| PredAnd { dst, a, b })
    }

    /// Emits a vote: whether a predicate is true in any lane of the warp.
    pub(crate) fn any_lane(&mut self, src: RegId) -> RegId {
        let (mode, src, mask) = (VoteMode::Any, src.into(), ALL_LANES);
        self.value(Type::Pred, |dst| Vote {
            mode,
            dst,
            src,
            mask,
        })
    }
}
