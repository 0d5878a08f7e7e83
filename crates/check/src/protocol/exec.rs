//! Execution of ops: known operands give numbers, others give terms.

use super::act::lanes_of;
use super::code::Act;
use super::rules;
use super::state::Env;
use super::value::{Held, Val};
use super::world::{Stop, World};
use crate::symbolic::{Arg, Node, Question, Sym, TermId};
use warpline_ir::ops::atomic::AtomicOp;
use warpline_ir::{
    Binary, Domain, ExecStatus, Machine, MemoryAddress, Op, Operand, ParamId, ParamKind, PerLane,
    RegId, SharedAddress, Type, Uniform, WARP,
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
                slot.map_or(Val::Opaque, |s| self.held_at(s).get(self.lanes()))
            }
        }
    }

    /// Sets a register in the active lanes, if it matters.
    pub(super) fn put(&mut self, r: RegId, val: Val) {
        let lanes = self.lanes();
        if let Some(slot) = self.env.slots.of(r) {
            self.held_at_mut(slot).set(lanes, val);
        }
    }

    /// Numbers that must be known.
    pub(super) fn known(&mut self, o: Operand, what: &str) -> Result<PerLane<u64>, Stop> {
        match self.val(o) {
            Val::Uni(x) => Ok([x; WARP]),
            Val::Lanes(x) => Ok(*x),
            Val::Sym(s) => {
                let range = self.env.terms.range(&self.st.decided, Arg::Sym(s));
                match range.single() {
                    Some(x) => Ok([x as u64; WARP]),
                    None => Err(self.undecided(what)),
                }
            }
            _ => Err(self.undecided(what)),
        }
    }

    pub(super) fn undecided(&self, what: &str) -> Stop {
        let text = crate::diagnostic::Message::new(format!(
            "depends on {what}, which the checker cannot compute"
        ))
        .cause("the value does not follow from launch parameters, indices or constants");
        self.refuse(&rules::UNKNOWN, text)
    }

    /// Runs one op.
    pub(super) fn run(&mut self, a: &Act<'_>) -> Result<Ran, Stop> {
        self.loc = a.loc;
        self.steps += 1;
        if a.pure {
            return self.compute(a);
        }
        if let Op::Opaque(_) = a.op {
            self.define(a);
            return Ok(Ran::Next);
        }
        if a.idle {
            return Ok(Ran::Next);
        }
        (self.loaded, self.lost, self.length) = (None, false, None);
        self.length = self.copy_length(a.op)?;
        self.reading = match a.defs[..] {
            [r] => Some(self.env.kernel.ty(r)),
            _ => None,
        };
        let changed = self.changed_words(a.op);
        match a.op.exec(self) {
            Err(fault) => return Err(self.stopped(fault)),
            Ok(ExecStatus::Blocked) => return Ok(Ran::Blocked),
            Ok(ExecStatus::Completed) => {}
        }
        if self.lost {
            return Err(self.undecided("an address in shared memory"));
        }
        if !a.defs.is_empty() {
            self.define(a);
        }
        self.st.words.extend(changed);
        match a.op {
            Op::StoreAsync(s) => self.follow(&s.dst, s.ty, &s.src),
            Op::Store(warpline_ir::ops::memory::Store {
                at: MemoryAddress::Shared(p),
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
        let loaded = self.loaded.take();
        if let (Some((val, ty)), [r]) = (loaded, &a.defs[..])
            && self.env.kernel.ty(*r).bytes() == ty.bytes()
        {
            let val = self.as_type(val, ty, self.env.kernel.ty(*r));
            return self.put(*r, val);
        }
        for &r in &a.defs {
            let val = match self.is_one_value(a, r) {
                true => self.content(a, r),
                false => Val::Opaque,
            };
            self.put(r, val);
        }
    }

    /// The word that a load from memory the kernel only reads gives: the same for the same
    /// address, in every role. Any other load may give anything.
    fn content(&mut self, a: &Act<'_>, r: RegId) -> Val {
        let ty = self.env.kernel.ty(r);
        if let Op::Load(load) = a.op
            && let MemoryAddress::Global { addr, offset } = load.at
            && let [_] = a.defs[..]
            && ty.is_int()
            && let Some(Arg::Sym(s)) = self.val(addr).arg(Type::U64)
            && self.reads_constant_memory(s)
        {
            let at = Arg::Sym(Sym {
                off: s.off + i128::from(offset),
                ..s
            });
            let term = self.env.terms.add(Node::Global(at, ty));
            return Val::Sym(Sym { term, off: 0 });
        }
        self.fresh_of(ty)
    }

    /// Does an address lead to memory that the kernel does not write?
    fn reads_constant_memory(&mut self, s: Sym) -> bool {
        let list = match self.env.terms.node(s.term) {
            Node::Sum(list) => list.to_vec(),
            _ => vec![(s.term, 1)],
        };
        let mut pointers = list
            .iter()
            .filter_map(|&(t, k)| match self.env.terms.node(t) {
                Node::Param(p) if k == 1 => {
                    let param = &self.env.kernel.params[p as usize];
                    matches!(param.kind, ParamKind::Pointer(_)).then_some(p)
                }
                _ => None,
            });
        let (Some(p), None) = (pointers.next(), pointers.next()) else {
            return false;
        };
        if self.env.written.contains(&ParamId(p)) {
            return false;
        }
        if !self.env.written.is_empty() {
            let name = &self.env.kernel.params[p as usize].name;
            let text = format!("{name} does not overlap memory that the kernel writes");
            self.assume(&crate::codes::A_ALIAS, text);
        }
        true
    }

    /// A word of one type, read as another of the same width.
    fn as_type(&mut self, val: Val, from: Type, to: Type) -> Val {
        match val {
            Val::Sym(_) if from != to && from.is_int() && to.is_int() => {
                self.convert(from, to, val)
            }
            Val::Sym(_) | Val::Pred { .. } if from != to => Val::Opaque,
            val => val,
        }
    }

    /// Do all lanes get the same of what an op reads from memory, or of others?
    pub(super) fn is_one_value(&self, a: &Act<'_>, r: RegId) -> bool {
        let same = || a.op.uniform(Uniform::Warp) >= Uniform::Warp;
        let agreed = || self.env.uniform.reg(r) >= Uniform::Warp;
        self.active().count_ones() == 1 || same() && agreed()
    }

    /// The length of a copy, where it is no number.
    fn copy_length(&mut self, op: &Op) -> Result<Option<Sym>, Stop> {
        let bytes = match op {
            Op::BulkLoad(o) => o.bytes,
            Op::BulkStore(o) => o.bytes,
            Op::BulkSend(o) => o.bytes,
            _ => return Ok(None),
        };
        match self.val(bytes) {
            Val::Sym(s) => Ok(Some(s)),
            Val::Uni(_) | Val::Lanes(_) => Ok(None),
            _ => Err(self.undecided("the length of its copy")),
        }
    }

    /// The words that an atomic leaves. What one lane adds is followed: whoever else adds, the sum
    /// is the same. Of all else it is known that all who read the word afterwards read the same.
    fn changed_words(&mut self, op: &Op) -> Vec<((u32, u32), (Val, Type))> {
        let (op, ty, at, values) = match op {
            Op::Atomic(o) => (o.op, o.ty, &o.at, &o.values),
            Op::AtomicReduce(o) => (o.op, o.ty, &o.at, &o.values),
            _ => return Vec::new(),
        };
        let (MemoryAddress::Shared(p), [value]) = (at, &values[..]) else {
            return Vec::new();
        };
        let followed = self.env.words[p.tile.index()] && !self.st.warps[self.cur].maybe();
        if !followed || self.val(p.byte).numbers().is_none() {
            return Vec::new();
        }
        let lanes = self.active();
        let Ok(places) = self.resolve_lanes(p, lanes, ty.bytes()) else {
            return Vec::new();
        };
        let mut words: Vec<(u32, u32)> = lanes_of(lanes)
            .map(|l| (places[l].cta, places[l].byte))
            .collect();
        words.sort_unstable();
        words.dedup();
        let one = lanes.is_power_of_two() && op == AtomicOp::Add && !ty.is_float();
        let mut leaves = |word: (u32, u32)| match self.st.words.get(&word).cloned() {
            Some((old, of)) if one && of == ty => {
                let value = self.val(*value);
                (self.running, self.decides, self.asked) = (None, true, None);
                let sum = self.binary(Binary::Add, ty, old, value);
                match self.asked.take() {
                    None if !matches!(sum, Val::Within(..) | Val::Opaque) => sum,
                    _ => self.fresh_of(ty),
                }
            }
            _ => self.fresh_of(ty),
        };
        words.into_iter().map(|w| (w, (leaves(w), ty))).collect()
    }

    /// Follows the words that a store leaves: each is a number, a term, or a value of which only
    /// that is known that all who read it read the same.
    fn follow(&mut self, to: &SharedAddress, ty: Type, src: &[Operand]) {
        if !self.env.words[to.tile.index()] || self.st.warps[self.cur].maybe() {
            return;
        }
        let (lanes, size) = (self.active(), ty.bytes() as u32);
        if self.val(to.byte).numbers().is_none() {
            return;
        }
        let Ok(places) = self.resolve_lanes(to, lanes, size as usize) else {
            return;
        };
        for (i, &o) in src.iter().enumerate() {
            let val = self.val(o);
            for lane in lanes_of(lanes) {
                let at = places[lane];
                let word = (at.cta, at.byte + i as u32 * size);
                let val = match &val {
                    Val::Lanes(x) => Val::Uni(x[lane]),
                    Val::Within(..) | Val::Opaque => self.fresh_of(ty),
                    val => val.clone(),
                };
                self.st.words.insert(word, (val, ty));
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
                    match self.number_for(a, s) {
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
        let launched = matches!(a.op, Op::ReadParam(_) | Op::ReadSpecial(_));
        if !launched && vals.iter().all(|v| v.numbers().is_some()) {
            lent.retain(|l| !a.defs.iter().any(|&d| self.env.slots.of(d) == Some(l.0)));
            let ran = a.op.exec(self);
            self.fold(&a.defs);
            self.give_back(lent);
            return match ran {
                Ok(ExecStatus::Completed) => Ok(Ran::Next),
                Ok(ExecStatus::Blocked) => Ok(Ran::Blocked),
                Err(fault) => Err(self.stopped(fault)),
            };
        }
        self.give_back(lent);
        if let Op::Mov(o) = a.op
            && self.copy_some(o.dst, o.src)
        {
            return Ok(Ran::Next);
        }
        let ty = a.defs.first().map(|&r| self.env.kernel.ty(r));
        self.running = ty.map(|ty| (a.kind, ty));
        self.decides = a.defs.iter().any(|r| self.env.control[r.index()]);
        self.exactly = a.defs.iter().any(|r| self.env.exact[r.index()]);
        let mut read = a.args.iter().filter_map(|o| o.as_reg());
        self.counts = read.any(|r| self.env.moved[r.index()]);
        self.asked = None;
        a.op.transfer(self);
        self.counts = true;
        Ok(match self.asked.take() {
            Some(q) => Ran::Asks(q),
            None => Ran::Next,
        })
    }

    /// Copies a register that only some of the lanes have a known value in.
    fn copy_some(&mut self, dst: RegId, src: Operand) -> bool {
        let slot = |r: RegId| self.env.slots.of(r);
        let (Some(from), Some(to)) = (src.as_reg().and_then(slot), slot(dst)) else {
            return false;
        };
        let (held, lanes) = (self.held_at(from).clone(), self.lanes());
        let some = held.lanes & lanes;
        let same = src.as_reg().map(|r| self.env.kernel.ty(r)) == Some(self.env.kernel.ty(dst));
        if some == 0 || some == lanes || !same || held.val == Val::Opaque {
            return false;
        }
        let to = self.held_at_mut(to);
        to.set(lanes, Val::Opaque);
        to.set(some, held.val);
        true
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
        let group = self.env.groups.of_number(a.defs[0], self.depth());
        let term = self.count_of(s.term, group);
        let range = self.env.terms.range_of(&self.st.decided, term);
        let off = s.off + i128::from(*x);
        (range.lo < range.hi && self.env.terms.is_launch_constant(s.term))
            .then_some(Sym { term, off })
    }

    /// The rounds of the first loop over a count in this round of the loops around.
    fn count_of(&mut self, count: TermId, group: u32) -> TermId {
        if !self.env.terms.is_launch_constant(count) {
            return count;
        }
        let around = self.st.warps[self.cur].inside().round;
        self.env.terms.add(Node::Loop {
            count,
            around,
            group,
            n: 0,
        })
    }

    /// The number that a count is in this round of the loops around, once it is decided.
    fn number_of(&mut self, s: Sym, group: u32) -> Result<u64, Question> {
        let of = self.count_of(s.term, group);
        let range = self.env.terms.range_of(&self.st.decided, of);
        match range.single() {
            Some(x) => Ok((x + s.off) as u64),
            None => Err(Question::RunsMoreThan { of, than: range.lo }),
        }
    }

    /// The number that stands for a term in an op that makes a stage or a parity.
    fn number_for(&mut self, a: &Act<'_>, s: Sym) -> Result<u64, Question> {
        let (terms, d) = (&self.env.terms, &self.st.decided);
        // Of a factor of a running counter only the remainder matters.
        if let (Op::Mul(_) | Op::Mad(_), [dst]) = (a.op, &a.defs[..])
            && let Some(period) = self.env.fold.period_of(*dst)
        {
            let period = i128::from(period);
            return match terms.undecided_residue(d, s.term, period) {
                Some(term) => Err(terms.next_residue(d, term, period)),
                None => {
                    let left = terms.residue(d, s.term, period).unwrap_or(0);
                    Ok((left + s.off).rem_euclid(period) as u64)
                }
            };
        }
        let depth = self.depth();
        let of = |r: &RegId| self.env.groups.of_number(*r, depth);
        let group = a.defs.first().map_or(0, of);
        self.number_of(s, group)
    }
}
