//! Bounds of the numbers in registers, from constants, indices and declared parameters.
//!
//! A query walks from a register to its definitions and evaluates their operands recursively. The
//! result covers every definition that may run. Values from memory are unbounded unless the query
//! provides bounds.
//!
//! Loops make definitions cyclic. A cycle of copies, such as `a = b; b = a`, adds no value, so the
//! walk ignores the repeated register. A cycle through arithmetic, such as `i = i + 1`, may reach
//! any value, so the result is unbounded.

use super::RuleContext;
use super::control_flow::{Def, LoopKind};
use std::cell::Cell;
use warpline_ir::ops::compare::Cmp;
use warpline_ir::ops::warp::VoteMode;
use warpline_ir::{Axis, Op, Operand, ParamKind, RegId, Special, Type};

/// The least and the greatest value, as unsigned numbers.
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

    /// Returns bounds that cover both ranges.
    pub(crate) fn union(self, other: Self) -> Self {
        Self::between(self.least.min(other.least), self.most.max(other.most))
    }

    /// Returns the bounds as signed numbers, if the values have the same sign.
    fn signed(self, bits: u32) -> Option<(i128, i128)> {
        let half = 1u128 << (bits - 1);
        let to_signed = |x: u64| {
            let x = u128::from(x);
            x as i128 - if x >= half { 2 * half as i128 } else { 0 }
        };
        let same_sign = (u128::from(self.least) >= half) == (u128::from(self.most) >= half);
        same_sign.then(|| (to_signed(self.least), to_signed(self.most)))
    }
}

/// A query for the bounds of registers.
pub(crate) struct BoundsQuery<'a, 'k> {
    cx: &'a RuleContext<'k>,
    /// The bounds of a value from memory, by the op that loads it.
    loaded: &'a dyn Fn(usize) -> Option<Bounds>,
    /// Restricts the query to the first execution of this op.
    first_run_of: Cell<Option<usize>>,
    /// The number of registers that the query may still visit.
    remaining: Cell<u32>,
    /// Does a bound assume that a product does not wrap around?
    assumed_no_wrap: Cell<bool>,
}

/// The registers under evaluation, from the queried one to the current one.
struct Path {
    regs: Vec<RegId>,
    /// From this index on, each register is a copy of the next one.
    first_copy: usize,
}

/// The most registers that one query visits.
const MAX_VISITED_REGS: u32 = 4000;

impl<'a, 'k> BoundsQuery<'a, 'k> {
    pub(crate) fn new(
        cx: &'a RuleContext<'k>,
        loaded: &'a dyn Fn(usize) -> Option<Bounds>,
    ) -> Self {
        Self {
            cx,
            loaded,
            first_run_of: Cell::new(None),
            remaining: Cell::new(MAX_VISITED_REGS),
            assumed_no_wrap: Cell::new(false),
        }
    }

    /// Restricts the query to the first execution of an op.
    pub(crate) fn at_first_run_of(self, op: usize) -> Self {
        self.first_run_of.set(Some(op));
        self
    }

    /// Returns the bounds of an operand of a type.
    pub(crate) fn bounds(&self, o: Operand, ty: Type) -> Bounds {
        self.remaining.set(MAX_VISITED_REGS);
        let mut path = Path {
            regs: Vec::new(),
            first_copy: 0,
        };
        self.operand(o, ty, &mut path).unwrap_or(type_bounds(ty))
    }

    /// Returns the truth of a predicate, if it is known.
    pub(crate) fn truth(&self, pred: RegId) -> Option<bool> {
        self.bounds(pred.into(), Type::Pred)
            .single()
            .map(|x| x != 0)
    }

    /// Does a result assume that a product does not wrap around?
    pub(crate) fn assumed_no_wrap(&self) -> bool {
        self.assumed_no_wrap.get()
    }

    /// Returns the bounds of an operand; `None` if it is a copy of a register on the path, so that
    /// it adds no value.
    fn operand(&self, o: Operand, ty: Type, path: &mut Path) -> Option<Bounds> {
        match o {
            Operand::Imm(x) => Some(Bounds::exactly(x & type_bounds(ty).most)),
            Operand::Reg(r) => self.reg(r, path),
        }
    }

    fn reg(&self, r: RegId, path: &mut Path) -> Option<Bounds> {
        let any = type_bounds(self.cx.kernel.ty(r));
        if let Some(i) = path.regs.iter().position(|x| *x == r) {
            return if i >= path.first_copy {
                None
            } else {
                Some(any)
            };
        }
        if path.regs.len() > 64 || self.remaining.get() == 0 {
            return Some(any);
        }
        self.remaining.set(self.remaining.get() - 1);
        path.regs.push(r);
        let mut bounds: Option<Bounds> = None;
        let defs = self.cx.code.defs(r);
        let first_run_of = self.first_run_of.get();
        let is_earlier = |d: &&Def| match (d, first_run_of) {
            (Def::Op(id), Some(op)) => *id < op,
            _ => true,
        };
        // If every definition is later in the text, execution order differs from text order, so all
        // of them count.
        let has_earlier = defs.iter().any(|d| is_earlier(&d));
        for def in defs.iter().filter(|d| !has_earlier || is_earlier(d)) {
            // The definition ran before the op, so its operands were written even earlier.
            if let (Def::Op(id), Some(_)) = (def, first_run_of) {
                self.first_run_of.set(Some(*id));
            }
            let value = match *def {
                Def::Op(id) if !self.may_run(id, path) => None,
                Def::Op(id) => self.op_result(id, r, path),
                Def::Counter(id) => Some(self.loop_counter(id, any, path)),
            };
            self.first_run_of.set(first_run_of);
            bounds = match (bounds, value) {
                (Some(a), Some(b)) => Some(a.union(b)),
                (a, b) => a.or(b),
            };
            if bounds == Some(any) {
                break;
            }
        }
        path.regs.pop();
        match defs.is_empty() {
            true => Some(any),
            false => bounds,
        }
    }

    /// May an op run, as far as the conditions around it are known?
    fn may_run(&self, op: usize, path: &mut Path) -> bool {
        let guards: Vec<_> = self.cx.code.guards(op).take(4).collect();
        guards.iter().all(|g| {
            let first_copy = std::mem::replace(&mut path.first_copy, path.regs.len());
            let cond = self.reg(g.cond, path);
            path.first_copy = first_copy;
            cond.and_then(Bounds::single)
                .is_none_or(|x| (x != 0) == g.holds)
        })
    }

    /// Returns the bounds of an operand of arithmetic, which starts a new chain of copies.
    fn arithmetic_operand(&self, o: Operand, ty: Type, path: &mut Path) -> Bounds {
        let first_copy = std::mem::replace(&mut path.first_copy, path.regs.len());
        let value = self.operand(o, ty, path);
        path.first_copy = first_copy;
        value.unwrap_or(type_bounds(ty))
    }

    fn loop_counter(&self, id: usize, any: Bounds, path: &mut Path) -> Bounds {
        let LoopKind::For { from, to, .. } = self.cx.code.loops[id].kind else {
            return any;
        };
        let from = self.arithmetic_operand(from, Type::U32, path);
        if self.first_run_of.get().is_some() {
            return from;
        }
        let to = self.arithmetic_operand(to, Type::U32, path);
        // As an unsigned number, a negative counter is large.
        let half = u64::from(u32::MAX / 2);
        match from.most <= half && to.most <= half {
            true => Bounds::between(from.least, to.most.saturating_sub(1).max(from.most)),
            false => any,
        }
    }

    fn op_result(&self, id: usize, dst: RegId, path: &mut Path) -> Option<Bounds> {
        let any = type_bounds(self.cx.kernel.ty(dst));
        let unless_wrapped = |b: Bounds| match b.most <= any.most {
            true => b,
            false => any,
        };
        let mut bounds = |o: Operand, ty: Type| self.arithmetic_operand(o, ty, path);
        Some(match self.cx.ops[id].op {
            Op::Mov(o) => return self.operand(o.src, o.ty, path),
            Op::Bitcast(o) if o.from.bytes() == o.to.bytes() => {
                return self.operand(o.src, o.from, path);
            }
            Op::Shuffle(o) => return self.operand(o.src, o.ty, path),
            Op::Vote(o) if matches!(o.mode, VoteMode::All | VoteMode::Any) => {
                return self.operand(o.src, Type::Pred, path);
            }
            Op::Select(o) => match bounds(o.cond, Type::Pred).single() {
                Some(0) => return self.operand(o.b, o.ty, path),
                Some(_) => return self.operand(o.a, o.ty, path),
                None => {
                    let (a, b) = (self.operand(o.a, o.ty, path), self.operand(o.b, o.ty, path));
                    return match (a, b) {
                        (Some(a), Some(b)) => Some(a.union(b)),
                        (a, b) => a.or(b),
                    };
                }
            },
            Op::Cvt(o) if is_int(o.from) && is_int(o.to) => {
                let x = bounds(o.src, o.from);
                let is_positive = !is_signed(o.from) || x.most <= type_bounds(o.from).most / 2;
                if is_positive { unless_wrapped(x) } else { any }
            }
            Op::Setp(o) => {
                compare(o.cmp, o.ty, bounds(o.a, o.ty), bounds(o.b, o.ty)).unwrap_or(any)
            }
            Op::PredAnd(o) => {
                let (a, b) = (bounds(o.a, Type::Pred), bounds(o.b, Type::Pred));
                Bounds::between(a.least.min(b.least), a.most.min(b.most))
            }
            Op::PredOr(o) => bounds(o.a, Type::Pred).max(bounds(o.b, Type::Pred)),
            Op::PredNot(o) => {
                let a = bounds(o.a, Type::Pred);
                Bounds::between(1 - a.most.min(1), 1 - a.least.min(1))
            }
            Op::Add(o) if is_int(o.ty) => {
                let (a, b) = (bounds(o.a, o.ty), bounds(o.b, o.ty));
                match a.most.checked_add(b.most) {
                    Some(most) => unless_wrapped(Bounds::between(a.least + b.least, most)),
                    None => any,
                }
            }
            Op::Mul(o) if is_int(o.ty) => {
                let (a, b) = (bounds(o.a, o.ty), bounds(o.b, o.ty));
                let product = |x: u64, y: u64| x.checked_mul(y).filter(|z| *z <= any.most);
                match (product(a.least, b.least), product(a.most, b.most)) {
                    (Some(least), Some(most)) => Bounds::between(least, most),
                    (Some(least), None) if least > 0 => {
                        self.assumed_no_wrap.set(true);
                        Bounds::between(least, any.most)
                    }
                    _ => any,
                }
            }
            Op::Div(o) if is_unsigned(o.ty) => match bounds(o.b, o.ty).single() {
                Some(by) if by > 0 => {
                    let a = bounds(o.a, o.ty);
                    Bounds::between(a.least / by, a.most / by)
                }
                _ => any,
            },
            Op::Rem(o) if is_unsigned(o.ty) => {
                match (bounds(o.a, o.ty), bounds(o.b, o.ty).single()) {
                    (a, Some(by)) if by > 0 && a.most < by => a,
                    (_, Some(by)) if by > 0 => Bounds::between(0, by - 1),
                    _ => any,
                }
            }
            Op::And(o) => {
                let (a, b) = (bounds(o.a, o.ty), bounds(o.b, o.ty));
                match (a.single(), b.single()) {
                    (Some(a), Some(b)) => Bounds::exactly(a & b),
                    _ => Bounds::between(0, a.most.min(b.most)),
                }
            }
            Op::Or(o) => {
                let (a, b) = (bounds(o.a, o.ty), bounds(o.b, o.ty));
                match (a.single(), b.single()) {
                    (Some(a), Some(b)) => Bounds::exactly(a | b),
                    _ => Bounds::between(a.least.max(b.least), any.most),
                }
            }
            Op::Xor(o) => match (bounds(o.a, o.ty).single(), bounds(o.b, o.ty).single()) {
                (Some(a), Some(b)) => Bounds::exactly(a ^ b),
                // The parity of a phase stays 0 or 1 when it is flipped.
                _ if bounds(o.a, o.ty).max(bounds(o.b, o.ty)).most <= 1 => Bounds::between(0, 1),
                _ => any,
            },
            Op::Shr(o) if is_unsigned(o.ty) => match bounds(o.b, Type::U32).single() {
                Some(by) if by < 64 => {
                    let a = bounds(o.a, o.ty);
                    Bounds::between(a.least >> by, a.most >> by)
                }
                _ => any,
            },
            Op::Min(o) if is_unsigned(o.ty) => {
                let (a, b) = (bounds(o.a, o.ty), bounds(o.b, o.ty));
                Bounds::between(a.least.min(b.least), a.most.min(b.most))
            }
            Op::Max(o) if is_unsigned(o.ty) => bounds(o.a, o.ty).max(bounds(o.b, o.ty)),
            Op::ReadParam(o) => match &self.cx.kernel.param(o.param).kind {
                ParamKind::Scalar(ty) if is_unsigned(*ty) => {
                    let declared = &self.cx.kernel.param(o.param).bounds;
                    let clamped = |x: i128| x.clamp(0, any.most.into()) as u64;
                    Bounds::between(clamped(declared.least), clamped(declared.most))
                }
                _ => any,
            },
            Op::ReadSpecial(o) => self.special_register(o.which).unwrap_or(any),
            _ => (self.loaded)(id).map_or(any, unless_wrapped),
        })
    }

    fn special_register(&self, which: Special) -> Option<Bounds> {
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
fn type_bounds(ty: Type) -> Bounds {
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
    let ends = |x: Bounds| match is_signed(ty) {
        true => x.signed(8 * ty.bytes() as u32),
        false if is_unsigned(ty) => Some((x.least.into(), x.most.into())),
        false => None,
    };
    let ((least_a, most_a), (least_b, most_b)) = (ends(a)?, ends(b)?);
    let decided = |is_true: bool, is_false: bool| match (is_true, is_false) {
        (true, _) => Some(Bounds::truth(true)),
        (_, true) => Some(Bounds::truth(false)),
        _ => None,
    };
    let are_equal = least_a == most_a && least_b == most_b && least_a == least_b;
    let are_disjoint = most_a < least_b || most_b < least_a;
    match cmp {
        Cmp::Eq => decided(are_equal, are_disjoint),
        Cmp::Ne => decided(are_disjoint, are_equal),
        Cmp::Lt => decided(most_a < least_b, least_a >= most_b),
        Cmp::Le => decided(most_a <= least_b, least_a > most_b),
        Cmp::Gt => decided(least_a > most_b, most_a <= least_b),
        Cmp::Ge => decided(least_a >= most_b, most_a < least_b),
    }
}
