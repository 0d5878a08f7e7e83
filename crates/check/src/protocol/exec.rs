//! Ops as the walk runs them: what is known is computed, what is not becomes a term.

use super::act::lanes_of;
use super::code::Act;
use super::record::{ANY_LANE, Run, Who};
use super::rules;
use super::term::{Arg, Node, Question, Shape, Sym};
use super::touch::Touch;
use super::trace::What;
use super::value::{Held, Val};
use super::world::{Stop, World};
use warpline_ir::ops::compare::Cmp;
use warpline_ir::{
    At, BarAt, BarRef, Done, Exec, Fault, FaultKind, Job, Lane, LaneBytes, Lanes, Machine, Mask,
    MemoryOrder, Op, Operand, ParamId, ParamKind, Place, RegId, SharedAt, Span, Special, Step,
    Sync, TensorMapValue, TileLayout, Type, Uniform, View, WARP,
};

/// What running an op came to.
pub(super) enum Ran {
    Next,
    Blocked,
    Asks(Question),
}

impl World<'_, '_> {
    /// The value of an operand in the active lanes.
    pub(super) fn val(&self, o: Operand) -> Val {
        match o {
            Operand::Imm(x) => Val::Uni(x),
            Operand::Reg(r) => {
                let slot = self.env.slots[r.index()];
                match self.st.warps[self.cur].regs.get(slot as usize) {
                    Some(held) => held.get(self.active()),
                    None => Val::Opaque,
                }
            }
        }
    }

    /// Sets a register in the active lanes, if it matters.
    pub(super) fn put(&mut self, r: RegId, val: Val) {
        let slot = self.env.slots[r.index()];
        let warp = &mut self.st.warps[self.cur];
        let active = warp.active;
        if let Some(held) = warp.regs.get_mut(slot as usize) {
            held.set(active, val);
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
        let one = self.active().count_ones() == 1;
        match self.loaded.take() {
            Some(Val::Uni(_)) if matches!(a.op, Op::Load(_)) => {}
            Some(val) if a.defs.len() == 1 => self.put(a.defs[0], val),
            _ => {
                for &r in &a.defs {
                    let uniform = one || a.op.uniform(Uniform::Warp) >= Uniform::Warp;
                    let val = match uniform {
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
        let mut place = None;
        for lane in lanes_of(lanes) {
            match (self.resolve(to, lane, size as usize), place) {
                (Ok(at), None) => place = Some(at),
                (Ok(at), Some(first)) if at == first => {}
                _ => return,
            }
        }
        let (Some(at), false) = (place, self.st.warps[self.cur].maybe()) else {
            return;
        };
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
        let mut lent: Vec<(usize, Held)> = Vec::new();
        let number = |r: &RegId| self.env.numbers[r.index()];
        if a.defs.iter().any(number) && !matches!(a.op, Op::Select(_) | Op::Mov(_)) {
            // What becomes a stage or a parity must be a number by now.
            for (v, &o) in vals.iter_mut().zip(&a.args) {
                if let Val::Sym(s) = *v {
                    match self.number_of(s) {
                        Ok(x) => {
                            *v = Val::Uni(x);
                            if let Operand::Reg(r) = o {
                                let slot = self.env.slots[r.index()] as usize;
                                lent.push((slot, self.st.warps[self.cur].regs[slot].clone()));
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
            lent.retain(|l| {
                !a.defs
                    .iter()
                    .any(|d| self.env.slots[d.index()] as usize == l.0)
            });
            let ran = a.op.exec(self);
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

    fn give_back(&mut self, lent: Vec<(usize, Held)>) {
        for (slot, held) in lent.into_iter().rev() {
            self.st.warps[self.cur].regs[slot] = held;
        }
    }

    /// The number that a count is in this round of the loops around, once it is decided.
    fn number_of(&mut self, s: Sym) -> Result<u64, Question> {
        let mut of = s.term;
        if self.env.terms.is_fixed(s.term) {
            let around = self.st.warps[self.cur].inside().round;
            let (count, n) = (s.term, 0);
            of = self.env.terms.add(Node::Loop { count, around, n });
        }
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
            let term = terms.add(Node::Op(kind, shape, args.to_vec()));
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
                let args = vec![*a, Arg::Num(1 << n)];
                let term = terms.add(Node::Op(kind, Shape::Mul, args));
                Val::Sym(Sym { term, off: 0 })
            }
            (Op::Shr(_), [a, Arg::Num(n)]) if *n < 31 => {
                let args = vec![*a, Arg::Num(1 << n)];
                let term = terms.add(Node::Op(kind, Shape::Div, args));
                Val::Sym(Sym { term, off: 0 })
            }
            (Op::Rem(_), _) => node(Shape::Rem),
            (Op::And(_), [a, Arg::Num(m)] | [Arg::Num(m), a]) if *m >= 0 && (*m + 1) & *m == 0 => {
                let args = vec![*a, Arg::Num(*m + 1)];
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
                let term = terms.add(Node::Op(kind, Shape::Any, vec![*a, *b]));
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
                let term = terms.add(Node::Op(kind, shape, args.to_vec()));
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
                .add(Node::Special(format!("{what}.{a}"), least));
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

    /// Where lanes reach, as runs by CTA; `None`: unknown.
    fn lane_runs(
        &mut self,
        lanes: Mask,
        p: &Place,
        width: usize,
    ) -> Result<Vec<(u32, Vec<Run>)>, Fault> {
        let unknown = self.val(p.byte).numbers().is_none();
        let mut by_cta: Vec<(u32, Vec<Run>)> = Vec::new();
        if unknown {
            let peer = match p.peer {
                None => self.st.warps[self.cur].cta,
                Some(o) => {
                    let ranks = self.known(o, "which CTA it reaches");
                    ranks.map_err(|s| self.fault(s))?[lanes.trailing_zeros() as usize] as u32
                }
            };
            // Anywhere in the stages they name.
            let each = self.env.kernel.tile(p.tile).layout.stage_bytes();
            let mut runs = Vec::new();
            for lane in lanes_of(lanes) {
                let lo = self.stage(p.tile, p.stage, lane)?;
                let run = Run {
                    lo,
                    hi: lo + each,
                    lane: ANY_LANE,
                };
                if !runs.contains(&run) {
                    runs.push(run);
                }
            }
            return Ok(vec![(peer, runs)]);
        }
        for lane in lanes_of(lanes) {
            let at = self.resolve(p, lane, width)?;
            let run = Run {
                lo: at.byte,
                hi: at.byte + width as u32,
                lane: lane as u8,
            };
            match by_cta.iter_mut().find(|c| c.0 == at.cta) {
                Some(c) => c.1.push(run),
                None => by_cta.push((at.cta, vec![run])),
            }
        }
        Ok(by_cta)
    }

    fn generic(
        &mut self,
        lanes: Mask,
        p: &Place,
        width: usize,
        write: bool,
        atomic: bool,
    ) -> Result<(), Fault> {
        for (cta, runs) in self.lane_runs(lanes, p, width)? {
            let reached = self.reach(lanes, cta);
            reached.map_err(|s| self.fault(s))?;
            let touched = self.touch(Touch {
                who: Who::Lanes,
                lanes,
                runs,
                write,
                atomic,
                bulk: false,
                cta,
                tile: p.tile.0,
            });
            touched.map_err(|s| self.fault(s))?;
        }
        Ok(())
    }

    /// Forgets followed words that are overwritten.
    fn forget(&mut self, cta: u32, lo: u32, hi: u32) {
        let gone: Vec<_> = self
            .st
            .words
            .range((cta, lo.saturating_sub(7))..(cta, hi))
            .map(|w| *w.0)
            .collect();
        for w in gone {
            self.st.words.remove(&w);
        }
    }

    fn issue(&mut self, job: &Job) -> Result<(), Stop> {
        let lanes = self.active();
        let mut reads: Vec<(u32, Run)> = Vec::new();
        let mut writes: Vec<(u32, Run)> = Vec::new();
        let run = |s: Span| match s {
            Span::Shared(at, len) => Some((
                at.cta,
                Run {
                    lo: at.byte,
                    hi: at.byte + len,
                    lane: ANY_LANE,
                },
            )),
            Span::Global(..) => None,
        };
        job.reads(&mut |s| reads.extend(run(s)));
        job.writes(&mut |s| writes.extend(run(s)));
        if self.length.is_some() {
            // As long as it may be: to the end of its row.
            for (_, r) in reads.iter_mut().chain(&mut writes) {
                r.hi = self.env.run_end(r.lo);
            }
        }
        let done = job.done();
        let (who, issuer) = match done {
            Done::Bytes(bar) => {
                let bar = bar.cta * self.env.bars + bar.slot;
                let phase = self.st.bars[bar as usize].phase;
                (Who::Load { bar, phase }, lanes)
            }
            Done::BulkGroup { lane } => (Who::Store, 1 << lane),
            Done::WgmmaGroup => (Who::Product, lanes),
            Done::CopyGroup { lanes } => (Who::Copy, lanes),
            Done::Nobody => return Ok(()),
        };
        let counted = matches!(done, Done::Bytes(_) | Done::WgmmaGroup);
        if self.st.warps[self.cur].maybe() && counted {
            let text =
                "issues a copy or product where it is unknown which of its lanes do".to_owned();
            return Err(self.refuse(&rules::UNKNOWN, text));
        }
        let bytes: u32 = writes.iter().map(|w| w.1.hi - w.1.lo).sum();
        let mut records = Vec::new();
        for (list, write) in [(reads, false), (writes, true)] {
            let mut by: Vec<(u32, u32, Vec<Run>)> = Vec::new();
            for (cta, run) in list {
                let tile = self.env.tile_at(run.lo);
                match by.iter_mut().find(|b| (b.0, b.1) == (cta, tile)) {
                    Some(b) => b.2.push(run),
                    None => by.push((cta, tile, vec![run])),
                }
            }
            for (cta, tile, runs) in by {
                self.reach(issuer, cta)?;
                if write {
                    let (lo, hi) = (runs[0].lo, runs.iter().map(|r| r.hi).max().unwrap_or(0));
                    self.forget(cta, lo, hi);
                }
                let i = self.touch(Touch {
                    who,
                    lanes: issuer,
                    runs,
                    write,
                    atomic: write && job.combines(),
                    bulk: job.is_async_proxy(),
                    cta,
                    tile,
                })?;
                if i != u32::MAX {
                    records.push(i);
                }
            }
        }
        self.issued(done, issuer, &records, bytes)
    }

    /// Notes who is told of a job.
    fn issued(
        &mut self,
        done: Done,
        issuer: Mask,
        records: &[u32],
        bytes: u32,
    ) -> Result<(), Stop> {
        let warp = &mut self.st.warps[self.cur];
        match done {
            Done::Bytes(bar) => {
                let at = (bar.cta * self.env.bars + bar.slot) as usize;
                self.usable(at, issuer)?;
                self.in_phase(at, issuer, "sends bytes to")?;
                let told = self.told(issuer);
                let (tile, byte) = records
                    .iter()
                    .map(|&i| self.st.records.get(i))
                    .find(|r| r.write)
                    .map_or((u32::MAX, 0), |r| (r.tile, r.runs[0].lo));
                let phase = self.st.bars[at].phase;
                self.trail(What::Copies {
                    bar: at,
                    phase,
                    tile,
                    byte,
                });
                let length = self.length;
                let b = &mut self.st.bars[at];
                b.copied = true;
                b.came.join(&told);
                records.iter().for_each(|&i| b.came.seen.add(i));
                match length {
                    Some(s) => b.bytes += self.env.terms.linear(Arg::Sym(s), -1, &mut b.terms),
                    None => b.bytes -= i64::from(bytes),
                }
                self.turn(at)
            }
            Done::BulkGroup { lane } => {
                let groups = match warp.bulk.iter_mut().find(|b| b.0 == lane) {
                    Some(b) => &mut b.1,
                    None => {
                        warp.bulk.push((lane, vec![Vec::new()]));
                        let last = warp.bulk.len() - 1;
                        &mut warp.bulk[last].1
                    }
                };
                if let Some(open) = groups.last_mut() {
                    open.extend(records);
                }
                Ok(())
            }
            Done::CopyGroup { .. } => {
                if warp.copies.is_empty() {
                    warp.copies.push(Vec::new());
                }
                if let Some(open) = warp.copies.last_mut() {
                    open.extend(records);
                }
                Ok(())
            }
            Done::WgmmaGroup => {
                for &i in records {
                    if !warp.open.contains(&i) {
                        warp.open.push(i);
                    }
                }
                Ok(())
            }
            Done::Nobody => Ok(()),
        }
    }

    fn rank(&mut self, peer: Option<Operand>, lane: usize) -> Result<u32, Fault> {
        let Some(p) = peer else {
            return Ok(self.st.warps[self.cur].cta);
        };
        let ranks = self.known(p, "which CTA it reaches");
        let rank = ranks.map_err(|s| self.fault(s))?[lane] as u32;
        if rank < self.env.ctas {
            return Ok(rank);
        }
        let size = self.env.ctas;
        Err(Fault::new(
            FaultKind::OutOfBounds,
            format!("names the CTA of rank {rank} in a cluster of {size}"),
        ))
    }

    fn stage(
        &mut self,
        tile: warpline_ir::TileId,
        stage: Operand,
        lane: usize,
    ) -> Result<u32, Fault> {
        let known = self.known(stage, "which stage of a tile it means");
        let stage = known.map_err(|s| self.fault(s))?[lane] as u32;
        let t = self.env.kernel.tile(tile);
        if stage < t.stages {
            return Ok(t.offset + stage * t.layout.stage_bytes());
        }
        Err(Fault::new(
            FaultKind::OutOfBounds,
            format!(
                "names stage {stage} of tile {}, which has {}",
                t.name, t.stages
            ),
        ))
    }
}

/// The low bytes of a number.
fn narrow<T: Lane>(x: u64) -> T {
    bytemuck::pod_read_unaligned(&x.to_le_bytes()[..size_of::<T>()])
}

impl Machine for World<'_, '_> {
    fn active(&self) -> Mask {
        self.st.warps[self.cur].active
    }

    fn get<T: Lane>(&mut self, o: Operand) -> Lanes<T> {
        match self.val(o) {
            Val::Uni(x) => [narrow(x); WARP],
            Val::Lanes(x) => std::array::from_fn(|l| narrow(x[l])),
            // The length of a copy that a launch decides: all that may be.
            Val::Sym(s) if self.length == Some(s) => [narrow(u64::from(MOST)); WARP],
            _ => [T::default(); WARP],
        }
    }

    fn set<T: Lane>(&mut self, r: RegId, v: &Lanes<T>) {
        if self.env.slots[r.index()] == u32::MAX {
            return;
        }
        let wide: Lanes<u64> = std::array::from_fn(|l| {
            let mut bytes = [0; 8];
            bytes[..size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&v[l]));
            u64::from_le_bytes(bytes)
        });
        let val = Val::of(&wide, self.active());
        self.put(r, val);
    }

    fn pred(&mut self, o: Operand) -> Mask {
        match self.val(o) {
            Val::Uni(0) => 0,
            Val::Uni(_) => Mask::MAX,
            Val::Lanes(x) => (0..WARP).fold(0, |m, l| m | Mask::from(x[l] != 0) << l),
            _ => 0,
        }
    }

    fn set_pred(&mut self, r: RegId, m: Mask) {
        let bits: Lanes<u64> = std::array::from_fn(|l| u64::from(m >> l & 1));
        let val = Val::of(&bits, self.active());
        self.put(r, val);
    }

    fn special(&mut self, s: Special) -> Lanes<u64> {
        let w = &self.st.warps[self.cur];
        let side = |a: usize| self.env.kernel.cluster[a];
        let all = |x: u32| [u64::from(x); WARP];
        match s {
            Special::Tid => std::array::from_fn(|l| u64::from(w.index) * 32 + l as u64),
            Special::LaneId => std::array::from_fn(|l| l as u64),
            Special::WarpId => all(w.index),
            Special::ClusterRank => all(w.cta),
            Special::ClusterSize => all(self.env.ctas),
            Special::ClusterDim(a) => all(side(a.index())),
            Special::ClusterCtaId(a) => {
                let before: u32 = (0..a.index()).map(side).product();
                all(w.cta / before.max(1) % side(a.index()))
            }
            _ => all(0),
        }
    }

    fn param(&mut self, _: ParamId) -> u64 {
        0
    }

    fn tensor_map(&mut self, p: ParamId) -> Result<TensorMapValue, Fault> {
        let ParamKind::TensorMap(decl) = &self.env.kernel.param(p).kind else {
            return Err(Fault::new(
                FaultKind::TensorMap,
                format!("{p} is no tensor map"),
            ));
        };
        let rank = decl.rank();
        let row = 1u64 << 20;
        Ok(TensorMapValue {
            decl: decl.clone(),
            base: 1 << 40,
            extents: vec![1 << 16; rank],
            strides: (1..rank as u64).map(|i| row * i).collect(),
        })
    }

    fn load(&mut self, lanes: Mask, at: &At, width: usize) -> Result<LaneBytes, Fault> {
        let mut out = [[0; 16]; WARP];
        let At::Shared(p) = at else {
            return Ok(out);
        };
        self.generic(lanes, p, width, false, false)?;
        if !self.env.words[p.tile.index()] || self.val(p.byte).numbers().is_none() {
            return Ok(out);
        }
        // A word that all lanes read and that is followed.
        let mut found = None;
        for lane in lanes_of(lanes) {
            let at = self.resolve(p, lane, width)?;
            let word = self.st.words.get(&(at.cta, at.byte)).cloned();
            match (&found, word) {
                (_, None) => return Ok(out),
                (None, word) => found = word,
                (Some(a), Some(b)) if *a == b => {}
                _ => return Ok(out),
            }
        }
        if let Some(Val::Uni(x)) = found {
            for o in &mut out {
                o[..8].copy_from_slice(&x.to_le_bytes());
            }
        }
        self.loaded = found;
        Ok(out)
    }

    fn store(&mut self, lanes: Mask, at: &At, width: usize, _: &LaneBytes) -> Result<(), Fault> {
        let At::Shared(p) = at else { return Ok(()) };
        self.generic(lanes, p, width, true, false)?;
        for (cta, runs) in self.lane_runs(lanes, p, width)? {
            for r in &runs {
                self.forget(cta, r.lo, r.hi);
            }
        }
        Ok(())
    }

    fn atomic(
        &mut self,
        at: &At,
        width: usize,
        _: MemoryOrder,
        _: &mut dyn FnMut(usize, u64) -> u64,
    ) -> Result<Lanes<u64>, Fault> {
        if let At::Shared(p) = at {
            self.generic(self.active(), p, width, true, true)?;
        }
        Ok([0; WARP])
    }

    fn resolve(&mut self, place: &Place, lane: usize, len: usize) -> Result<SharedAt, Fault> {
        let cta = self.rank(place.peer, lane)?;
        let base = self.stage(place.tile, place.stage, lane)?;
        let byte = match self.val(place.byte).numbers() {
            Some(b) => b[lane],
            None => {
                self.lost = true;
                0
            }
        };
        let byte = byte + u64::from(place.offset);
        let t = self.env.kernel.tile(place.tile);
        let end = u64::from(t.layout.rows * t.layout.row_bytes());
        let len = if self.length.is_some() { 1 } else { len as u64 };
        if byte + len > end {
            return Err(Fault::new(
                FaultKind::OutOfBounds,
                format!(
                    "reaches {len} bytes at byte {byte} of tile {}, which has {end}",
                    t.name
                ),
            ));
        }
        Ok(SharedAt {
            cta,
            byte: base + byte as u32,
        })
    }

    fn resolve_view(&mut self, view: &View, lane: usize) -> Result<SharedAt, Fault> {
        let cta = self.rank(view.peer, lane)?;
        let base = self.stage(view.tile, view.stage, lane)?;
        let layout = self.env.kernel.tile(view.tile).layout;
        Ok(SharedAt {
            cta,
            byte: base + layout.linear(view.row, view.col),
        })
    }

    fn resolve_bar(&mut self, bar: &BarRef, lane: usize) -> Result<BarAt, Fault> {
        let at = self.bar_at(bar, lane);
        let at = at.map_err(|s| self.fault(s))? as u32;
        Ok(BarAt {
            cta: at / self.env.bars,
            slot: at % self.env.bars,
        })
    }

    fn layout(&self, view: &View) -> TileLayout {
        self.env.kernel.layout(view)
    }

    fn sync(&mut self, s: &Sync) -> Exec {
        self.act(s)
    }

    fn submit(&mut self, job: Job) -> Result<(), Fault> {
        let issued = self.issue(&job);
        issued.map_err(|s| self.fault(s))
    }
}

/// The bytes that a copy of unknown length is taken for.
const MOST: u32 = 16;
