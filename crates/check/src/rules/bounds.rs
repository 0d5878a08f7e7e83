//! Bounds of the numbers in registers, from constants, indices and declared parameters.
//!
//! A bound holds for every definition of a register that may run. Values from memory are unbounded
//! unless the query provides bounds.

use super::RuleContext;
use super::control_flow::{Def, LoopKind};
use std::cell::Cell;
use warpline_ir::ops::compare::Cmp;
use warpline_ir::ops::warp::VoteMode;
use warpline_ir::{Axis, Op, Operand, ParamKind, RegId, Special, Type};

/// The least and the greatest value, read as an unsigned number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bounds {
    pub(crate) least: u64,
    pub(crate) most: u64,
}

impl Bounds {
    pub(crate) const ANY: Self = Self {
        least: 0,
        most: u64::MAX,
    };
    pub(crate) const ZERO: Self = Self::exactly(0);

    pub(crate) const fn exactly(x: u64) -> Self {
        Self { least: x, most: x }
    }

    const fn between(least: u64, most: u64) -> Self {
        Self { least, most }
    }

    fn truth(x: bool) -> Self {
        Self::exactly(x.into())
    }

    /// Returns the only possible value, if there is one.
    pub(crate) fn single(self) -> Option<u64> {
        (self.least == self.most).then_some(self.least)
    }

    /// Returns the bounds of either value.
    pub(crate) fn or(self, other: Self) -> Self {
        Self::between(self.least.min(other.least), self.most.max(other.most))
    }

    /// Returns the bounds as signed numbers, if all have the same sign.
    fn signed(self, bits: u32) -> Option<(i128, i128)> {
        let half = 1u128 << (bits - 1);
        let read = |x: u64| {
            let x = u128::from(x);
            x as i128 - if x >= half { 2 * half as i128 } else { 0 }
        };
        let same = (u128::from(self.least) >= half) == (u128::from(self.most) >= half);
        same.then(|| (read(self.least), read(self.most)))
    }
}

/// A query for the bounds of registers.
pub(crate) struct Values<'a, 'k> {
    cx: &'a RuleContext<'k>,
    /// The bounds of a value from memory, by the op that reads it.
    read: &'a dyn Fn(usize) -> Option<Bounds>,
    /// Restricts the query to the first execution of this op.
    first: Cell<Option<usize>>,
    /// The remaining number of ops that the query may visit.
    left: Cell<u32>,
    /// Does a bound assume a product that does not wrap around?
    wraps: Cell<bool>,
}

/// The registers under evaluation, and the index from which each is a copy of the next.
struct Path {
    regs: Vec<RegId>,
    copies: usize,
}

/// The most ops that one query visits.
const MOST: u32 = 4000;

impl<'a, 'k> Values<'a, 'k> {
    pub(crate) fn new(cx: &'a RuleContext<'k>, read: &'a dyn Fn(usize) -> Option<Bounds>) -> Self {
        Self {
            cx,
            read,
            first: Cell::new(None),
            left: Cell::new(MOST),
            wraps: Cell::new(false),
        }
    }

    /// Restricts the query to the first execution of an op.
    pub(crate) fn first_at(self, op: usize) -> Self {
        self.first.set(Some(op));
        self
    }

    /// Returns the bounds of an operand of a type.
    pub(crate) fn of(&self, o: Operand, ty: Type) -> Bounds {
        self.left.set(MOST);
        let mut path = Path {
            regs: Vec::new(),
            copies: 0,
        };
        self.operand(o, ty, &mut path).unwrap_or(all(ty))
    }

    /// Returns the truth of a predicate, if it is known.
    pub(crate) fn truth(&self, pred: RegId) -> Option<bool> {
        self.of(pred.into(), Type::Pred).single().map(|x| x != 0)
    }

    /// Did a result assume a product that does not wrap around?
    pub(crate) fn assumed_no_wrap(&self) -> bool {
        self.wraps.get()
    }

    /// Returns `None` if the operand adds no value to those on the path.
    fn operand(&self, o: Operand, ty: Type, path: &mut Path) -> Option<Bounds> {
        match o {
            Operand::Imm(x) => Some(Bounds::exactly(x & all(ty).most)),
            Operand::Reg(r) => self.reg(r, path),
        }
    }

    fn reg(&self, r: RegId, path: &mut Path) -> Option<Bounds> {
        let any = all(self.cx.kernel.ty(r));
        if let Some(at) = path.regs.iter().position(|x| *x == r) {
            return if at >= path.copies { None } else { Some(any) };
        }
        if path.regs.len() > 64 || self.left.get() == 0 {
            return Some(any);
        }
        self.left.set(self.left.get() - 1);
        path.regs.push(r);
        let mut found: Option<Bounds> = None;
        let defs = self.cx.code.defs(r);
        let first = self.first.get();
        let before = |d: &&Def| match (d, first) {
            (Def::Op(id), Some(first)) => *id < first,
            _ => true,
        };
        // Without an earlier definition, execution order differs from text order.
        let early = defs.iter().any(|d| before(&d));
        for def in defs.iter().filter(|d| !early || before(d)) {
            // The operands of an op were written before it.
            if let (Def::Op(id), Some(_)) = (def, first) {
                self.first.set(Some(*id));
            }
            let value = match *def {
                Def::Op(id) if !self.may_run(id, path) => None,
                Def::Op(id) => self.result(id, r, path),
                Def::Counter(id) => Some(self.counter(id, any, path)),
            };
            self.first.set(first);
            found = match (found, value) {
                (Some(a), Some(b)) => Some(a.or(b)),
                (a, b) => a.or(b),
            };
            if found == Some(any) {
                break;
            }
        }
        path.regs.pop();
        match defs.is_empty() {
            true => Some(any),
            false => found,
        }
    }

    /// May an op run under the known conditions around it?
    fn may_run(&self, op: usize, path: &mut Path) -> bool {
        let guards: Vec<_> = self.cx.code.guards(op).take(4).collect();
        guards.iter().all(|g| {
            let copies = std::mem::replace(&mut path.copies, path.regs.len());
            let cond = self.reg(g.cond, path);
            path.copies = copies;
            cond.and_then(Bounds::single)
                .is_none_or(|x| (x != 0) == g.holds)
        })
    }

    /// Evaluates an operand that is not a copy, which starts a new chain of copies.
    fn fresh(&self, o: Operand, ty: Type, path: &mut Path) -> Bounds {
        let copies = std::mem::replace(&mut path.copies, path.regs.len());
        let value = self.operand(o, ty, path);
        path.copies = copies;
        value.unwrap_or(all(ty))
    }

    fn counter(&self, id: usize, any: Bounds, path: &mut Path) -> Bounds {
        let LoopKind::For { from, to, .. } = self.cx.code.loops[id].kind else {
            return any;
        };
        let from = self.fresh(from, Type::U32, path);
        if self.first.get().is_some() {
            return from;
        }
        let to = self.fresh(to, Type::U32, path);
        // A negative signed counter reads as a large number.
        let half = u64::from(u32::MAX / 2);
        match from.most <= half && to.most <= half {
            true => Bounds::between(from.least, to.most.saturating_sub(1).max(from.most)),
            false => any,
        }
    }

    fn result(&self, id: usize, dst: RegId, path: &mut Path) -> Option<Bounds> {
        let any = all(self.cx.kernel.ty(dst));
        let known = |b: Bounds| match b.most <= any.most {
            true => b,
            false => any,
        };
        let mut of = |o: Operand, ty: Type| self.fresh(o, ty, path);
        Some(match self.cx.ops[id].op {
            Op::Mov(o) => return self.operand(o.src, o.ty, path),
            Op::Bitcast(o) if o.from.bytes() == o.to.bytes() => {
                return self.operand(o.src, o.from, path);
            }
            Op::Shuffle(o) => return self.operand(o.src, o.ty, path),
            Op::Vote(o) if matches!(o.mode, VoteMode::All | VoteMode::Any) => {
                return self.operand(o.src, Type::Pred, path);
            }
            Op::Select(o) => match of(o.cond, Type::Pred).single() {
                Some(0) => return self.operand(o.b, o.ty, path),
                Some(_) => return self.operand(o.a, o.ty, path),
                None => {
                    let (a, b) = (self.operand(o.a, o.ty, path), self.operand(o.b, o.ty, path));
                    return match (a, b) {
                        (Some(a), Some(b)) => Some(a.or(b)),
                        (a, b) => a.or(b),
                    };
                }
            },
            Op::Cvt(o) if is_int(o.from) && is_int(o.to) => {
                let x = of(o.src, o.from);
                let positive = !is_signed(o.from) || x.most <= all(o.from).most / 2;
                if positive { known(x) } else { any }
            }
            Op::Setp(o) => compare(o.cmp, o.ty, of(o.a, o.ty), of(o.b, o.ty)).unwrap_or(any),
            Op::PredAnd(o) => {
                let (a, b) = (of(o.a, Type::Pred), of(o.b, Type::Pred));
                Bounds::between(a.least.min(b.least), a.most.min(b.most))
            }
            Op::PredOr(o) => of(o.a, Type::Pred).max(of(o.b, Type::Pred)),
            Op::PredNot(o) => {
                let a = of(o.a, Type::Pred);
                Bounds::between(1 - a.most.min(1), 1 - a.least.min(1))
            }
            Op::Add(o) if is_int(o.ty) => {
                let (a, b) = (of(o.a, o.ty), of(o.b, o.ty));
                match a.most.checked_add(b.most) {
                    Some(most) => known(Bounds::between(a.least + b.least, most)),
                    None => any,
                }
            }
            Op::Mul(o) if is_int(o.ty) => {
                let (a, b) = (of(o.a, o.ty), of(o.b, o.ty));
                let exact = a.most.checked_mul(b.most).filter(|x| *x <= any.most);
                let least = a.least.checked_mul(b.least).filter(|x| *x <= any.most);
                match (least, exact) {
                    (Some(least), Some(most)) => Bounds::between(least, most),
                    (Some(least), None) if least > 0 => {
                        self.wraps.set(true);
                        Bounds::between(least, any.most)
                    }
                    _ => any,
                }
            }
            Op::Div(o) if is_unsigned(o.ty) => match of(o.b, o.ty).single() {
                Some(by) if by > 0 => {
                    let a = of(o.a, o.ty);
                    Bounds::between(a.least / by, a.most / by)
                }
                _ => any,
            },
            Op::Rem(o) if is_unsigned(o.ty) => match (of(o.a, o.ty), of(o.b, o.ty).single()) {
                (a, Some(by)) if by > 0 && a.most < by => a,
                (_, Some(by)) if by > 0 => Bounds::between(0, by - 1),
                _ => any,
            },
            Op::And(o) => {
                let (a, b) = (of(o.a, o.ty), of(o.b, o.ty));
                match (a.single(), b.single()) {
                    (Some(a), Some(b)) => Bounds::exactly(a & b),
                    _ => Bounds::between(0, a.most.min(b.most)),
                }
            }
            Op::Or(o) => {
                let (a, b) = (of(o.a, o.ty), of(o.b, o.ty));
                match (a.single(), b.single()) {
                    (Some(a), Some(b)) => Bounds::exactly(a | b),
                    _ => Bounds::between(a.least.max(b.least), any.most),
                }
            }
            Op::Xor(o) => match (of(o.a, o.ty).single(), of(o.b, o.ty).single()) {
                (Some(a), Some(b)) => Bounds::exactly(a ^ b),
                // A flipped parity stays a parity.
                _ if of(o.a, o.ty).max(of(o.b, o.ty)).most <= 1 => Bounds::between(0, 1),
                _ => any,
            },
            Op::Shr(o) if is_unsigned(o.ty) => match of(o.b, Type::U32).single() {
                Some(by) if by < 64 => {
                    let a = of(o.a, o.ty);
                    Bounds::between(a.least >> by, a.most >> by)
                }
                _ => any,
            },
            Op::Min(o) if is_unsigned(o.ty) => {
                let (a, b) = (of(o.a, o.ty), of(o.b, o.ty));
                Bounds::between(a.least.min(b.least), a.most.min(b.most))
            }
            Op::Max(o) if is_unsigned(o.ty) => of(o.a, o.ty).max(of(o.b, o.ty)),
            Op::ReadParam(o) => match &self.cx.kernel.param(o.param).kind {
                ParamKind::Scalar(ty) if is_unsigned(*ty) => {
                    let declared = &self.cx.kernel.param(o.param).bounds;
                    let inside = |x: i128| x.clamp(0, any.most.into()) as u64;
                    Bounds::between(inside(declared.least), inside(declared.most))
                }
                _ => any,
            },
            Op::ReadSpecial(o) => self.special(o.which).unwrap_or(any),
            _ => (self.read)(id).map_or(any, known),
        })
    }

    fn special(&self, which: Special) -> Option<Bounds> {
        let kernel = self.cx.kernel;
        let below = |n: u32| Some(Bounds::between(0, u64::from(n).saturating_sub(1)));
        match which {
            Special::Tid => below(kernel.threads()),
            Special::LaneId => below(32),
            Special::WarpId => below(kernel.warps()),
            Special::ClusterRank => below(kernel.cluster_size()),
            Special::ClusterSize => Some(Bounds::exactly(kernel.cluster_size().into())),
            Special::GridDim(Axis::Y | Axis::Z) => Some(Bounds::between(1, 65_535)),
            Special::GridDim(Axis::X) | Special::GridClusters(_) => {
                Some(Bounds::between(1, (1 << 31) - 1))
            }
            Special::ClusterDim(_) | Special::SmCount => Some(Bounds::between(1, 1 << 16)),
            Special::CtaId(_) | Special::ClusterId(_) => below(u32::MAX >> 1),
            _ => None,
        }
    }
}

impl Bounds {
    /// Returns the bounds of the greater of two values.
    fn max(self, other: Self) -> Self {
        Self::between(self.least.max(other.least), self.most.max(other.most))
    }
}

/// Returns the bounds of a type.
fn all(ty: Type) -> Bounds {
    let most = match (ty, ty.bytes()) {
        (Type::Pred, _) => 1,
        (_, bytes @ 1..8) => (1 << (8 * bytes)) - 1,
        _ => u64::MAX,
    };
    Bounds::between(0, most)
}

fn is_unsigned(ty: Type) -> bool {
    matches!(ty, Type::U8 | Type::U16 | Type::U32 | Type::U64)
}

fn is_signed(ty: Type) -> bool {
    matches!(ty, Type::I32 | Type::I64)
}

fn is_int(ty: Type) -> bool {
    is_unsigned(ty) || is_signed(ty)
}

/// Returns the result of a comparison, if it is known.
fn compare(cmp: Cmp, ty: Type, a: Bounds, b: Bounds) -> Option<Bounds> {
    let read = |x: Bounds| match is_signed(ty) {
        true => x.signed(8 * ty.bytes() as u32),
        false if is_unsigned(ty) => Some((x.least.into(), x.most.into())),
        false => None,
    };
    let ((a, most_a), (b, most_b)) = (read(a)?, read(b)?);
    let always = |yes: bool, no: bool| match (yes, no) {
        (true, _) => Some(Bounds::truth(true)),
        (_, true) => Some(Bounds::truth(false)),
        _ => None,
    };
    let (same, apart) = (
        a == most_a && b == most_b && a == b,
        most_a < b || most_b < a,
    );
    match cmp {
        Cmp::Eq => always(same, apart),
        Cmp::Ne => always(apart, same),
        Cmp::Lt => always(most_a < b, a >= most_b),
        Cmp::Le => always(most_a <= b, a > most_b),
        Cmp::Gt => always(a > most_b, most_a <= b),
        Cmp::Ge => always(a >= most_b, most_a < b),
    }
}
