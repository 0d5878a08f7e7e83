//! Ops as the walk runs them: what is known is computed, what is not becomes a term.

use super::act::lanes_of;
use super::code::Act;
use super::rules;
use super::state::Env;
use super::term::{Arg, Node, Question, Shape, Sym, TermId};
use super::value::{Held, Val};
use super::world::{Stop, World};
use warpline_ir::ops::compare::Cmp;
use warpline_ir::{
    At, Lanes, Machine, Mask, Op, Operand, ParamId, Place, RegId, Special, Step, Type, Uniform,
    WARP,
};

/// What running an op came to.
pub(super) enum Ran {
    Next,
    Blocked,
    Asks(Question),
}

impl Act<'_> {
    /// Does it compute a stage or a parity, from what may be a term so far?
    pub(super) fn makes_number(&self, env: &Env<'_>) -> bool {
        let term = |o: &Operand| matches!(o, Operand::Reg(r) if env.may_be_terms[r.index()]);
        self.pure
            && self.defs.iter().any(|r| env.numbers[r.index()])
            && !matches!(self.op, Op::Select(_) | Op::Mov(_))
            && self.args.iter().any(term)
    }
}

impl World<'_, '_> {
    /// The value of an operand in the active lanes.
    pub(super) fn val(&self, o: Operand) -> Val {
        match o {
            Operand::Imm(x) => Val::Uni(x),
            Operand::Reg(r) => {
                let slot = self.env.slots.of(r);
                slot.map_or(Val::Opaque, |s| self.held_at(s).get(self.active()))
            }
        }
    }

    /// Sets a register in the active lanes, if it matters.
    pub(super) fn put(&mut self, r: RegId, val: Val) {
        let active = self.active();
        if let Some(slot) = self.env.slots.of(r) {
            self.held_at_mut(slot).set(active, val);
        }
    }

    /// Numbers that must be known.
    pub(super) fn known(&mut self, o: Operand, what: &str) -> Result<Lanes<u64>, Stop> {
        match self.val(o) {
            Val::Uni(x) => Ok([x; WARP]),
            Val::Lanes(x) => Ok(*x),
            Val::Sym(s) => {
                let (lo, hi) = self.env.terms.range(&self.st.decided, Arg::Sym(s));
                if lo == hi {
                    return Ok([lo as u64; WARP]);
                }
                Err(self.unknown(what))
            }
            _ => Err(self.unknown(what)),
        }
    }

    pub(super) fn unknown(&self, what: &str) -> Stop {
        let text = format!("does not know from the program {what}");
        self.refuse(&rules::UNKNOWN, text)
    }

    /// Runs one op.
    pub(super) fn run(&mut self, a: &Act<'_>) -> Result<Ran, Stop> {
        self.loc = a.loc;
        self.steps += 1;
        if a.pure {
            return self.compute(a);
        }
        if a.idle {
            return Ok(Ran::Next);
        }
        (self.loaded, self.lost, self.length) = (None, false, None);
        self.length = self.copy_length(a.op);
        match a.op.exec(self) {
            Err(fault) => return Err(self.stopped(fault)),
            Ok(Step::Blocked) => return Ok(Ran::Blocked),
            Ok(Step::Next) => {}
        }
        if self.lost {
            return Err(self.unknown("where it reaches in shared memory"));
        }
        if !a.defs.is_empty() {
            self.define(a);
        }
        match a.op {
            Op::StoreAsync(s) => self.follow(&s.dst, s.ty, &s.src),
            Op::Store(warpline_ir::ops::memory::Store {
                at: At::Shared(p),
                ty,
                src,
                ..
            }) => self.follow(p, *ty, src),
            _ => {}
        }
        Ok(Ran::Next)
    }

    /// What an op that reads memory, or meets others, leaves in its registers.
    fn define(&mut self, a: &Act<'_>) {
        match self.loaded.take() {
            Some(Val::Uni(_)) if matches!(a.op, Op::Load(_)) => {}
            Some(val) if a.defs.len() == 1 => self.put(a.defs[0], val),
            _ => {
                for &r in &a.defs {
                    let val = match self.is_one_value(a, r) {
                        true if self.env.kernel.ty(r) == Type::Pred => {
                            let Sym { term, .. } = self.fresh(0);
                            Val::Pred { term, not: false }
                        }
                        true => Val::Sym(self.fresh(0)),
                        false => Val::Opaque,
                    };
                    self.put(r, val);
                }
            }
        }
    }

    /// Do all lanes get the same of what an op reads from memory, or of others?
    pub(super) fn is_one_value(&self, a: &Act<'_>, r: RegId) -> bool {
        let same = || a.op.uniform(Uniform::Warp) >= Uniform::Warp;
        let agreed = || self.env.uniform.reg(r) >= Uniform::Warp;
        self.active().count_ones() == 1 || same() && agreed()
    }

    /// A value that anything could be.
    pub(super) fn fresh(&mut self, least: i64) -> Sym {
        self.st.fresh += 1;
        let term = self.env.terms.add(Node::Fresh(self.st.fresh, least));
        Sym { term, off: 0 }
    }

    /// The length of a copy, if a launch decides it.
    fn copy_length(&self, op: &Op) -> Option<Sym> {
        let bytes = match op {
            Op::BulkLoad(o) => o.bytes,
            Op::BulkStore(o) => o.bytes,
            Op::BulkSend(o) => o.bytes,
            _ => return None,
        };
        match self.val(bytes) {
            Val::Sym(s) => Some(s),
            _ => None,
        }
    }

    /// Follows the words that a store leaves, if all its lanes leave the same.
    fn follow(&mut self, to: &Place, ty: Type, src: &[Operand]) {
        if !self.env.words[to.tile.index()] {
            return;
        }
        let (lanes, size) = (self.active(), ty.bytes() as u32);
        let Ok(places) = self.resolve_lanes(to, lanes, size as usize) else {
            return;
        };
        let at = places[lanes.trailing_zeros() as usize];
        if lanes_of(lanes).any(|l| places[l] != at) || self.st.warps[self.cur].maybe() {
            return;
        }
        for (i, &o) in src.iter().enumerate() {
            let val = self.val(o);
            if !matches!(val, Val::Opaque | Val::Lanes(_)) {
                let word = (at.cta, at.byte + i as u32 * size);
                self.st.words.insert(word, val);
            }
        }
    }

    /// Runs an op that does nothing but compute.
    fn compute(&mut self, a: &Act<'_>) -> Result<Ran, Stop> {
        let mut vals: Vec<Val> = a.args.iter().map(|&o| self.val(o)).collect();
        // Registers that stand for a number in this op only.
        let mut lent: Vec<(u32, Held)> = Vec::new();
        if a.makes_number(self.env) {
            if let Some(sum) = self.sum(a, &vals) {
                self.put(a.defs[0], Val::Sym(sum));
                return Ok(Ran::Next);
            }
            // What becomes a stage or a parity must be a number by now.
            for (v, &o) in vals.iter_mut().zip(&a.args) {
                if let Val::Sym(s) = *v {
                    match self.number_of(s) {
                        Ok(x) => {
                            *v = Val::Uni(x);
                            if let Operand::Reg(r) = o
                                && let Some(slot) = self.env.slots.of(r)
                            {
                                lent.push((slot, self.held_at(slot).clone()));
                                self.put(r, Val::Uni(x));
                            }
                        }
                        Err(q) => {
                            self.give_back(lent);
                            return Ok(Ran::Asks(q));
                        }
                    }
                }
            }
        }
        let fixed = matches!(a.op, Op::ReadParam(_) | Op::ReadSpecial(_));
        if !fixed && vals.iter().all(|v| v.numbers().is_some()) {
            lent.retain(|l| !a.defs.iter().any(|&d| self.env.slots.of(d) == Some(l.0)));
            let ran = a.op.exec(self);
            self.fold(&a.defs);
            self.give_back(lent);
            return match ran {
                Ok(Step::Next) => Ok(Ran::Next),
                Ok(Step::Blocked) => Ok(Ran::Blocked),
                Err(fault) => Err(self.stopped(fault)),
            };
        }
        self.give_back(lent);
        let val = match a.op {
            Op::ReadParam(p) => self.param_term(p.param),
            Op::ReadSpecial(s) => self.special_term(s.which),
            Op::Select(s) => match self.val(s.cond) {
                c @ (Val::Pred { .. } | Val::Sym(_)) => {
                    let p = c.arg().unwrap_or(Arg::Num(0));
                    match self.env.terms.truth(&self.st.decided, p) {
                        Ok(true) => self.val(s.a),
                        Ok(false) => self.val(s.b),
                        Err(q) => return Ok(Ran::Asks(q)),
                    }
                }
                Val::Uni(0) => self.val(s.b),
                Val::Uni(_) => self.val(s.a),
                Val::Lanes(c) => match (self.val(s.a).numbers(), self.val(s.b).numbers()) {
                    (Some(x), Some(y)) => {
                        let mixed = std::array::from_fn(|l| if c[l] != 0 { x[l] } else { y[l] });
                        Val::of(&mixed, self.active())
                    }
                    _ => Val::Opaque,
                },
                Val::Opaque => Val::Opaque,
            },
            op => {
                let args: Option<Vec<Arg>> = vals.iter().map(Val::arg).collect();
                match args {
                    Some(args) if op.uniform(Uniform::Warp) >= Uniform::Warp => {
                        let natural = a.defs.first().is_some_and(|&r| {
                            matches!(self.env.kernel.ty(r), Type::U32 | Type::U64)
                        });
                        match self.term(op, a.kind, &args, natural) {
                            Ok(val) => val,
                            Err(q) => return Ok(Ran::Asks(q)),
                        }
                    }
                    _ => Val::Opaque,
                }
            }
        };
        for &r in &a.defs {
            self.put(r, val.clone());
        }
        Ok(Ran::Next)
    }

    /// Counters keep the number that stands for the one they have.
    fn fold(&mut self, defs: &[RegId]) {
        for &r in defs {
            if let Val::Uni(x) = self.val(r.into())
                && let folded = self.env.fold.number(r, x)
                && folded != x
            {
                self.put(r, Val::Uni(folded));
            }
        }
    }

    fn give_back(&mut self, lent: Vec<(u32, Held)>) {
        for (slot, held) in lent.into_iter().rev() {
            *self.held_at_mut(slot) = held;
        }
    }

    /// A sum that can wait until the count in it is decided: whoever is in the loop goes on
    /// meanwhile, and all that matters of the sum is what it comes to with the rounds so far.
    fn sum(&mut self, a: &Act<'_>, vals: &[Val]) -> Option<Sym> {
        let sum = matches!(a.defs[..], [r] if self.env.sums[r.index()]);
        let ([Val::Sym(s), Val::Uni(x)] | [Val::Uni(x), Val::Sym(s)], true) = (vals, sum) else {
            return None;
        };
        let term = self.count_of(s.term);
        let (lo, hi) = self.env.terms.range_of(&self.st.decided, term);
        let off = s.off + *x as i64;
        (lo < hi && self.env.terms.is_fixed(s.term)).then_some(Sym { term, off })
    }

    /// The rounds of the first loop over a count in this round of the loops around.
    fn count_of(&mut self, count: TermId) -> TermId {
        if !self.env.terms.is_fixed(count) {
            return count;
        }
        let (around, n) = (self.st.warps[self.cur].inside().round, 0);
        self.env.terms.add(Node::Loop { count, around, n })
    }

    /// The number that a count is in this round of the loops around, once it is decided.
    fn number_of(&mut self, s: Sym) -> Result<u64, Question> {
        let of = self.count_of(s.term);
        let (lo, hi) = self.env.terms.range_of(&self.st.decided, of);
        match lo == hi {
            true => Ok((lo + s.off) as u64),
            false => Err(Question::More { of, than: lo }),
        }
    }

    /// An op on operands that are not all known.
    fn term(&mut self, op: &Op, kind: u32, args: &[Arg], natural: bool) -> Result<Val, Question> {
        let terms = &self.env.terms;
        let narrow = |ty: Type| matches!(ty, Type::U32 | Type::I32);
        let signed = |x: i64| i64::from(x as u32 as i32);
        let node = |shape| {
            let term = terms.add(Node::Op(kind, shape, args.into()));
            Val::Sym(Sym { term, off: 0 })
        };
        Ok(match (op, args) {
            (Op::Mov(_) | Op::Bitcast(_) | Op::Cvt(_), [a @ (Arg::Sym(_) | Arg::Pred { .. })]) => {
                (*a).into()
            }
            (Op::Add(o), [Arg::Sym(s), Arg::Num(x)] | [Arg::Num(x), Arg::Sym(s)])
                if narrow(o.ty) =>
            {
                return self.shift(*s, signed(*x), o.ty);
            }
            (Op::Sub(o), [Arg::Sym(s), Arg::Num(x)]) if narrow(o.ty) => {
                return self.shift(*s, -signed(*x), o.ty);
            }
            (Op::Sub(_), [Arg::Sym(a), Arg::Sym(b)]) if a.term == b.term && a.off >= b.off => {
                Val::Uni((a.off - b.off) as u64)
            }
            (Op::Add(_), _) => node(Shape::Add),
            (Op::Mul(_), _) => node(Shape::Mul),
            (Op::Div(_), _) => node(Shape::Div),
            (Op::Shl(_), [a, Arg::Num(n)]) if *n < 31 => {
                let args = [*a, Arg::Num(1 << n)].into();
                let term = terms.add(Node::Op(kind, Shape::Mul, args));
                Val::Sym(Sym { term, off: 0 })
            }
            (Op::Shr(_), [a, Arg::Num(n)]) if *n < 31 => {
                let args = [*a, Arg::Num(1 << n)].into();
                let term = terms.add(Node::Op(kind, Shape::Div, args));
                Val::Sym(Sym { term, off: 0 })
            }
            (Op::Rem(_), _) => node(Shape::Rem),
            (Op::And(_), [a, Arg::Num(m)] | [Arg::Num(m), a]) if *m >= 0 && (*m + 1) & *m == 0 => {
                let args = [*a, Arg::Num(*m + 1)].into();
                let term = terms.add(Node::Op(kind, Shape::Rem, args));
                Val::Sym(Sym { term, off: 0 })
            }
            (Op::Min(_) | Op::Max(_), [a, b]) => {
                let (x, y) = (
                    terms.range(&self.st.decided, *a),
                    terms.range(&self.st.decided, *b),
                );
                let least = matches!(op, Op::Min(_));
                if x.1 <= y.0 {
                    if least { *a } else { *b }.into()
                } else if y.1 <= x.0 {
                    if least { *b } else { *a }.into()
                } else {
                    node(if least { Shape::Min } else { Shape::Max })
                }
            }
            (Op::Setp(s), [a, b])
                if s.ty.is_float()
                    || !matches!(
                        s.ty,
                        Type::U32 | Type::I32 | Type::U64 | Type::I64 | Type::Pred
                    ) =>
            {
                let term = terms.add(Node::Op(kind, Shape::Any, [*a, *b].into()));
                Val::Pred { term, not: false }
            }
            (Op::Setp(s), [a, b]) => match self.compare(s.cmp, *a, *b) {
                Ok(known) => Val::Uni(known.into()),
                Err(p) => p.into(),
            },
            (Op::PredNot(_), [Arg::Pred { term, not }]) => Val::Pred {
                term: *term,
                not: !not,
            },
            (Op::PredAnd(_), [Arg::Num(0), _] | [_, Arg::Num(0)]) => Val::Uni(0),
            (Op::PredAnd(_), [Arg::Num(_), p] | [p, Arg::Num(_)]) => (*p).into(),
            (Op::PredAnd(_), [a, b]) => self.logic(Node::Both(*a, *b)),
            (Op::PredOr(_), [Arg::Num(0), p] | [p, Arg::Num(0)]) => (*p).into(),
            (Op::PredOr(_), [Arg::Num(_), _] | [_, Arg::Num(_)]) => Val::Uni(1),
            (Op::PredOr(_), [a, b]) => self.logic(Node::Either(*a, *b)),
            // A vote of what all lanes agree on, if all of them vote.
            (Op::Vote(_) | Op::Shuffle(_), [a, ..]) if !matches!(a, Arg::Num(_)) => (*a).into(),
            _ => {
                let pred = args.iter().any(|a| matches!(a, Arg::Pred { .. }));
                let shape = if natural { Shape::Natural } else { Shape::Any };
                let term = terms.add(Node::Op(kind, shape, args.into()));
                match pred {
                    true => Val::Opaque,
                    false => Val::Sym(Sym { term, off: 0 }),
                }
            }
        })
    }

    fn compare(&self, cmp: Cmp, a: Arg, b: Arg) -> Result<bool, Arg> {
        self.env.terms.compare(&self.st.decided, cmp, a, b)
    }

    fn logic(&self, node: Node) -> Val {
        let term = self.env.terms.add(node);
        let p = Arg::Pred { term, not: false };
        match self.env.terms.truth(&self.st.decided, p) {
            Ok(known) => Val::Uni(known.into()),
            Err(_) => p.into(),
        }
    }

    /// A term plus a constant; a difference below zero is another number, and a very large one.
    fn shift(&mut self, s: Sym, by: i64, ty: Type) -> Result<Val, Question> {
        let moved = Sym {
            off: s.off + by,
            ..s
        };
        if ty == Type::I32 || by >= 0 {
            return Ok(Val::Sym(moved));
        }
        match self.compare(Cmp::Lt, Arg::Sym(s), Arg::Num(-by)) {
            Ok(false) => Ok(Val::Sym(moved)),
            Ok(true) => Ok(Val::Sym(self.fresh(1 << 31))),
            Err(Arg::Pred { term, .. }) => Err(Question::Is(term)),
            Err(_) => Ok(Val::Opaque),
        }
    }

    fn param_term(&self, p: ParamId) -> Val {
        let least = self.env.least(p);
        let term = self.env.terms.add(Node::Param(p.0, least));
        Val::Sym(Sym { term, off: 0 })
    }

    fn special_term(&mut self, s: Special) -> Val {
        let cta = self.st.warps[self.cur].cta;
        let side = |a: usize| self.env.kernel.cluster[a];
        let rank = |a: usize| {
            let before: u32 = (0..a).map(side).product();
            cta / before.max(1) % side(a)
        };
        let name = |what: &str, a: usize, least: i64| {
            let term = self
                .env
                .terms
                .add(Node::Special(format!("{what}.{a}").into(), least));
            Sym { term, off: 0 }
        };
        match s {
            Special::CtaId(a) => {
                let i = a.index();
                let mut sym = name("cta", i, 0);
                sym.off = i64::from(rank(i));
                Val::Sym(sym)
            }
            Special::GridDim(a) => Val::Sym(name("grid", a.index(), 1)),
            Special::ClusterId(a) => Val::Sym(name("cluster", a.index(), 0)),
            Special::GridClusters(a) => Val::Sym(name("clusters", a.index(), 1)),
            Special::SmId | Special::SmCount | Special::Clock | Special::GlobalTimer => {
                Val::Sym(self.fresh(0))
            }
            known => Val::of(&self.special(known), Mask::MAX),
        }
    }
}
