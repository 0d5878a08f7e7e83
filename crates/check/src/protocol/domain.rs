//! The value domain of the transfer functions: a known value is a number, a value that the launch
//! or memory decides is a term, and any other value is unknown.
//!
//! If the result of an op depends on an open decision, the op does not run. It records the question
//! and runs again after the decision.

use super::launched;
use super::value::Val;
use super::world::World;
use crate::codes::{self, Rule};
use crate::symbolic::{Arg, Fit, Node, Question, Range, Sym, TermId, type_range};
use warpline_ir::ops::compare::Cmp;
use warpline_ir::ops::warp::VoteMode;
use warpline_ir::{Binary, Domain, Machine, Operand, ParamId, RegId, Special, Type, WARP};

impl World<'_, '_> {
    /// Notes what must be decided before the op can run.
    ///
    /// Where nothing but an address follows from the result, any value will do.
    fn question(&mut self, q: Question) -> Val {
        if self.decides {
            self.asked.get_or_insert(q);
        }
        Val::Opaque
    }

    /// A value that anything in a range could be.
    pub(super) fn fresh(&mut self, range: Range) -> Sym {
        self.st.fresh += 1;
        let node = Node::Fresh(self.st.fresh);
        let term = self.env.terms.bounded(node, range);
        Sym { term, off: 0 }
    }

    /// An unknown value of a type, the same in all lanes.
    pub(super) fn fresh_of(&mut self, ty: Type) -> Val {
        let sym = self.fresh(type_range(ty));
        match ty {
            Type::Pred => Val::Pred {
                term: sym.term,
                not: false,
            },
            _ => Val::Sym(sym),
        }
    }

    /// The result of arithmetic in a type.
    fn fitted(&mut self, result: Option<Arg>, ty: Type) -> Val {
        let Some(result) = result else {
            return Val::Opaque;
        };
        let terms = &self.env.terms;
        let below = match terms.fit(&self.st.decided, result, ty) {
            Fit::Exactly(a) => return Val::from_arg(a, ty),
            Fit::MayBeBelow => true,
            Fit::MayBeAbove => false,
        };
        let Arg::Sym(s) = result else {
            return Val::Opaque;
        };
        // A loop that counts by the same term may know more.
        let seen = terms.substituted(&self.st.decided, result, &|t| self.counted_as(t));
        if let Fit::Exactly(a) = terms.fit(&self.st.decided, seen, ty)
            && let Some(Arg::Num(moved)) = terms.sum(a, seen, -1)
        {
            return Val::from_arg(
                Arg::Sym(Sym {
                    off: s.off + moved,
                    ..s
                }),
                ty,
            );
        }
        // Of a single term and a constant, too, cases are worth to be told apart.
        let simple = terms.is_linear(s.term) || !matches!(terms.node(s.term), Node::Sum(_));
        if below && !simple {
            return Val::from_arg(terms.wrap(&self.st.decided, result, ty), ty);
        }
        // A difference below zero is a very large number: both cases are followed.
        if below && !ty.is_signed() {
            match self.compared(Cmp::Lt, result, Arg::Num(0)) {
                Err(Arg::Pred { term, .. }) => return self.question(Question::Holds(term)),
                Ok(true) => {
                    let off = s.off + type_range(ty).hi + 1;
                    let around = Arg::Sym(Sym { off, ..s });
                    return Val::from_arg(terms.wrap(&self.st.decided, around, ty), ty);
                }
                _ if terms.range(&self.st.decided, result).hi <= type_range(ty).hi => {
                    return Val::Sym(s);
                }
                _ => {}
            }
        }
        if !(self.decides && simple || self.exactly) || !terms.is_counted(s.term) {
            return Val::from_arg(terms.wrap(&self.st.decided, result, ty), ty);
        }
        self.assume_fits(s, ty);
        Val::Sym(s)
    }

    /// Two operands, if both are the same in all lanes; a number is read as a type.
    fn pair(&self, ty: Type, a: &Val, b: &Val) -> Option<(Arg, Arg)> {
        Some((a.arg(ty)?, b.arg(ty)?))
    }

    fn lesser(&mut self, ty: Type, a: Arg, b: Arg, least: bool) -> Val {
        let terms = &self.env.terms;
        let linear = |a: Arg| match a {
            Arg::Sym(s) => terms.is_linear(s.term),
            _ => true,
        };
        match self.compared(Cmp::Lt, a, b) {
            Ok(less) => Val::from_arg(if less == least { a } else { b }, ty),
            Err(_) if !linear(a) || !linear(b) => {
                let term = terms.add(match least {
                    true => Node::Min(a, b),
                    false => Node::Max(a, b),
                });
                Val::Sym(Sym { term, off: 0 })
            }
            Err(Arg::Pred { term, .. }) => self.question(Question::Holds(term)),
            Err(_) => Val::Opaque,
        }
    }

    /// A comparison of what a loop around, or one that is over, counts.
    pub(super) fn compared(&self, cmp: Cmp, a: Arg, b: Arg) -> Result<bool, Arg> {
        let (terms, d) = (&self.env.terms, &self.st.decided);
        let see = |t: TermId| self.counted_as(t);
        let difference = match (a, b) {
            (Arg::Pred { .. }, _) | (_, Arg::Pred { .. }) => None,
            _ => terms.sum(a, b, -1),
        };
        match difference {
            None => terms.compare(d, cmp, a, b),
            Some(difference) => {
                let seen = terms.substituted(d, difference, &see);
                let answer = terms.compare(d, cmp, seen, Arg::Num(0));
                // What bounds the count itself may tell, too.
                match terms.compare(d, cmp, difference, Arg::Num(0)) {
                    Ok(known) if answer.is_err() => Ok(known),
                    _ => answer,
                }
            }
        }
    }

    fn masked(&mut self, ty: Type, a: Arg, mask: i128) -> Option<Arg> {
        let (terms, d) = (&self.env.terms, &self.st.decided);
        let power = |x: i128| x > 0 && x & (x - 1) == 0;
        if mask >= 0 && power(mask + 1) {
            return terms.remainder(d, a, mask + 1);
        }
        // A mask of all high bits rounds down to a multiple of its lowest bit.
        let low = match ty.is_signed() {
            true => -mask,
            false => type_range(ty).hi + 1 - mask,
        };
        match power(low) {
            true => terms.product(terms.quotient(d, a, low)?, Arg::Num(low)),
            false => None,
        }
    }

    /// `a` divided by a constant, and the remainder, as PTX rounds them.
    fn divided(&mut self, f: Binary, ty: Type, a: Arg, k: i128) -> Val {
        if k == 0 {
            let ones = if ty.is_signed() {
                -1
            } else {
                type_range(ty).hi
            };
            return Val::from_arg(Arg::Num(ones), ty);
        }
        let (terms, d) = (&self.env.terms, &self.st.decided);
        if terms.range(d, a).lo < 0 || k < 0 {
            return self.function(&[Val::from_arg(a, ty), Val::from_arg(Arg::Num(k), ty)]);
        }
        let result = match f {
            Binary::Div => terms.quotient(d, a, k),
            _ => terms.remainder(d, a, k),
        };
        self.fitted(result, ty)
    }

    fn divided_by_term(&mut self, f: Binary, ty: Type, a: Arg, b: Arg) -> Val {
        let (terms, d) = (&self.env.terms, &self.st.decided);
        if terms.range(d, a).lo < 0 || terms.range(d, b).lo <= 0 {
            return self.function(&[Val::from_arg(a, ty), Val::from_arg(b, ty)]);
        }
        let node = match f {
            Binary::Div => Node::Quotient(a, b),
            _ => Node::Remainder(a, b),
        };
        let term = terms.add(node);
        Val::Sym(Sym { term, off: 0 })
    }

    fn logic(&self, node: Node) -> Val {
        let term = self.env.terms.add(node);
        let p = Arg::Pred { term, not: false };
        match self.env.terms.truth(&self.st.decided, p) {
            Ok(known) => Val::Uni(known.into()),
            Err(_) => Val::from_arg(p, Type::Pred),
        }
    }
}

impl Domain for World<'_, '_> {
    type Value = Val;

    fn read(&mut self, o: Operand, ty: Type) -> Val {
        let val = self.val(o);
        match (&val, o) {
            (Val::Sym(_), Operand::Reg(r)) if self.env.kernel.ty(r) != ty => {
                self.convert(self.env.kernel.ty(r), ty, val)
            }
            _ => val,
        }
    }

    fn write(&mut self, r: RegId, v: Val) {
        if self.asked.is_none() {
            self.put(r, v);
        }
    }

    fn unknown(&mut self) -> Val {
        Val::Opaque
    }

    fn function(&mut self, operands: &[Val]) -> Val {
        let Some((op, ty)) = self.running else {
            return Val::Opaque;
        };
        // Numbers of unlike types may have the same bits: as bits they are told apart.
        let args: Option<Vec<Arg>> = operands.iter().map(|v| v.arg(Type::U64)).collect();
        let Some(args) = args else {
            return Val::Opaque;
        };
        match ty {
            Type::Pred => {
                let term = self.env.terms.add(Node::Test(op, args.into()));
                Val::Pred { term, not: false }
            }
            ty => {
                let term = self.env.terms.add(Node::Function(op, args.into(), ty));
                Val::Sym(Sym { term, off: 0 })
            }
        }
    }

    fn binary(&mut self, f: Binary, ty: Type, a: Val, b: Val) -> Val {
        let by = if matches!(f, Binary::Shl | Binary::Shr) {
            Type::U32
        } else {
            ty
        };
        let (Some(x), Some(y)) = (a.arg(ty), b.arg(by)) else {
            return self.bounded(f, ty, &a, &b);
        };
        let terms = &self.env.terms;
        let bits = 8 * ty.bytes() as i128;
        let result = match (f, y) {
            (Binary::Add, _) => terms.sum(x, y, 1),
            (Binary::Sub, _) => terms.sum(x, y, -1),
            (Binary::Mul, _) => terms.product(x, y),
            (Binary::Div | Binary::Rem, Arg::Num(k)) => return self.divided(f, ty, x, k),
            (Binary::Div | Binary::Rem, _) => return self.divided_by_term(f, ty, x, y),
            (Binary::Min | Binary::Max, _) => return self.lesser(ty, x, y, f == Binary::Min),
            (Binary::And, Arg::Num(mask)) => match self.masked(ty, x, mask) {
                Some(result) => Some(result),
                None => return self.function(&[a, b]),
            },
            (Binary::And, _) => match x {
                Arg::Num(_) => return self.binary(f, ty, b, a),
                _ => return self.function(&[a, b]),
            },
            (Binary::Shl, Arg::Num(n)) if n >= bits => Some(Arg::Num(0)),
            (Binary::Shl, Arg::Num(n)) => terms.product(x, Arg::Num(1 << n)),
            (Binary::Shr, Arg::Num(n)) => terms.quotient(&self.st.decided, x, 1 << n.min(bits)),
            (Binary::Or | Binary::Xor, _) | (Binary::Shl | Binary::Shr, _) => {
                return self.function(&[a, b]);
            }
        };
        self.fitted(result, ty)
    }

    fn convert(&mut self, from: Type, to: Type, v: Val) -> Val {
        match v.arg(from) {
            Some(a) => Val::from_arg(self.env.terms.wrap(&self.st.decided, a, to), to),
            None => match self.interval(&v, from) {
                Some((lo, hi)) => {
                    let most = u64::try_from(type_range(to).hi).unwrap_or(u64::MAX);
                    Val::within(lo, hi, most)
                }
                None => Val::Opaque,
            },
        }
    }

    fn compare(&mut self, cmp: Cmp, ty: Type, a: Val, b: Val) -> Val {
        let Some((a, b)) = self.pair(ty, &a, &b) else {
            return Val::Opaque;
        };
        match self.compared(cmp, a, b) {
            Ok(known) => Val::Uni(known.into()),
            Err(p) => Val::from_arg(p, Type::Pred),
        }
    }

    fn select(&mut self, cond: Val, a: Val, b: Val) -> Val {
        match cond {
            Val::Uni(0) => b,
            Val::Uni(_) => a,
            c @ (Val::Pred { .. } | Val::Sym(_)) => {
                let p = c.arg(Type::Pred).unwrap_or(Arg::Num(0));
                match self.env.terms.truth(&self.st.decided, p) {
                    Ok(true) => a,
                    Ok(false) => b,
                    Err(_) if a == b => a,
                    Err(q) => self.question(q),
                }
            }
            Val::Lanes(c) => match (a.numbers(), b.numbers()) {
                (Some(x), Some(y)) => {
                    let mixed = std::array::from_fn(|l| if c[l] != 0 { x[l] } else { y[l] });
                    Val::of(&mixed, self.active())
                }
                _ => self.either_of(&a, &b),
            },
            Val::Within(..) | Val::Opaque => self.either_of(&a, &b),
        }
    }

    fn both(&mut self, a: Val, b: Val) -> Val {
        match (a.arg(Type::Pred), b.arg(Type::Pred)) {
            (Some(Arg::Num(0)), _) | (_, Some(Arg::Num(0))) => Val::Uni(0),
            (Some(Arg::Num(_)), _) => b,
            (_, Some(Arg::Num(_))) => a,
            (Some(a), Some(b)) => self.logic(Node::And(a, b)),
            _ => Val::Opaque,
        }
    }

    fn either(&mut self, a: Val, b: Val) -> Val {
        let one = |v: &Val| matches!(v, Val::Uni(x) if *x != 0);
        match (a.arg(Type::Pred), b.arg(Type::Pred)) {
            _ if one(&a) || one(&b) => Val::Uni(1),
            (Some(Arg::Num(_)), _) => b,
            (_, Some(Arg::Num(_))) => a,
            (Some(a), Some(b)) => self.logic(Node::Or(a, b)),
            _ => Val::Opaque,
        }
    }

    fn not(&mut self, p: Val) -> Val {
        match p {
            Val::Uni(x) => Val::Uni(u64::from(x == 0)),
            Val::Lanes(x) => Val::of(&x.map(|x| u64::from(x == 0)), self.active()),
            Val::Pred { term, not } => Val::Pred { term, not: !not },
            _ => Val::Opaque,
        }
    }

    fn param(&mut self, p: ParamId, ty: Type) -> Val {
        let term = launched::param(&self.env.terms, self.env.kernel, p, ty);
        match ty {
            Type::Pred => Val::Pred { term, not: false },
            _ => Val::Sym(Sym { term, off: 0 }),
        }
    }

    fn special(&mut self, s: Special) -> Val {
        let cta = self.st.warps[self.cur].cta;
        let side = |a: usize| self.env.kernel.cluster[a];
        let rank = |a: usize| {
            let before: u32 = (0..a).map(side).product();
            i128::from(cta / before.max(1) % side(a))
        };
        // The grid has at most 2^31 - 1 CTAs along x, and 65535 along the other axes.
        let most = |a: usize| if a == 0 { (1i128 << 31) - 1 } else { 65535 };
        let name = |what: &str, a: usize, least: i128, most: i128, multiple: i128| {
            let range = Range::new(least, most).multiples_of(multiple);
            let node = Node::Special(format!("{what}.{a}").into());
            let term = self.env.terms.bounded(node, range);
            Sym { term, off: 0 }
        };
        match s {
            Special::CtaId(a) => {
                // Of the first CTA of the cluster, and the rank in it on top.
                let (i, each) = (a.index(), i128::from(side(a.index())));
                let first = name("cta", i, 0, most(i) - each, each);
                Val::Sym(Sym {
                    off: rank(i),
                    ..first
                })
            }
            Special::GridDim(a) => {
                let each = i128::from(side(a.index()));
                Val::Sym(name("grid", a.index(), each, most(a.index()), each))
            }
            Special::ClusterId(a) => {
                let each = i128::from(side(a.index()));
                Val::Sym(name("cluster", a.index(), 0, most(a.index()) / each, 1))
            }
            Special::GridClusters(a) => {
                let each = i128::from(side(a.index()));
                Val::Sym(name("clusters", a.index(), 1, most(a.index()) / each, 1))
            }
            Special::SmId | Special::SmCount => self.fresh_of(Type::U32),
            // Lanes read clocks one after the other.
            Special::Clock | Special::GlobalTimer => Val::Opaque,
            Special::Tid | Special::LaneId if self.is_elected() => {
                let base = match s {
                    Special::Tid => i128::from(self.st.warps[self.cur].index) * WARP as i128,
                    _ => 0,
                };
                let node = Node::Special("the elected lane".into());
                let term = self
                    .env
                    .terms
                    .bounded(node, Range::new(0, WARP as i128 - 1));
                Val::Sym(Sym { term, off: base })
            }
            known => {
                let numbers = Machine::special(self, known);
                Val::of(&numbers, self.active())
            }
        }
    }

    fn vote(&mut self, mode: VoteMode, p: Val) -> Val {
        match (mode, &p) {
            (_, Val::Opaque | Val::Within(..) | Val::Lanes(_)) => Val::Opaque,
            // All lanes agree on it.
            (VoteMode::Uniform, _) => Val::Uni(1),
            (VoteMode::All | VoteMode::Any, _) => p,
        }
    }

    fn exchange(&mut self, v: Val) -> Val {
        match v {
            Val::Lanes(_) => Val::Opaque,
            same => same,
        }
    }

    fn broadcast(&mut self, o: Operand, ty: Type, lane: Val) -> Val {
        let whole = self.val(o);
        if !matches!(whole, Val::Opaque | Val::Within(..) | Val::Lanes(_)) {
            return Domain::read(self, o, ty);
        }
        let (Val::Uni(lane), Operand::Reg(r)) = (lane, o) else {
            return Val::Opaque;
        };
        let held = self.env.slots.of(r).map(|s| self.held_at(s).clone());
        match held.map(|h| h.get(1 << (lane % WARP as u64))) {
            Some(Val::Lanes(x)) => Val::Uni(x[lane as usize % WARP]),
            Some(Val::Within(..)) => Val::Opaque,
            Some(val) if self.env.kernel.ty(r) == ty => val,
            _ => Val::Opaque,
        }
    }
}

impl World<'_, '_> {
    /// Notes that a result is taken to stay inside its type.
    fn assume_fits(&mut self, s: Sym, ty: Type) {
        let (range, all) = (
            self.env.terms.range(&self.st.decided, Arg::Sym(s)),
            type_range(ty),
        );
        let name = self.name(Arg::Sym(s));
        if range.hi > all.hi {
            let text = format!("{name} < {}", power_of_two(all.hi + 1));
            self.assume(&codes::A_OVERFLOW, text);
        }
        if range.lo < all.lo {
            let text = format!("{name} >= {}", power_of_two(all.lo));
            self.assume(&codes::A_OVERFLOW, text);
        }
    }

    /// Adds an assumption to the verdict.
    pub(super) fn assume(&self, rule: &Rule, text: String) {
        let mut assumed = self.env.assumed.borrow_mut();
        let at = self.env.kernel.locs.author(self.loc);
        assumed.entry((rule.code, text)).or_insert(at);
    }
}

/// A power of two, or its opposite, as one reads it.
fn power_of_two(x: i128) -> String {
    let size = x.unsigned_abs();
    let name = match size.is_power_of_two() && size > 256 {
        true => format!("2^{}", size.trailing_zeros()),
        false => size.to_string(),
    };
    match x < 0 {
        true => format!("-{name}"),
        false => name,
    }
}
