//! Canonical states: two states are equal if the same events are possible from both.
//!
//! The canonical state expresses growing numbers as differences: a phase relative to the phase of
//! its mbarrier, an iteration relative to the decided iterations of its loop, a commit group
//! relative to the groups of the other warps. It identifies a record by its access and by the warps
//! that are ordered after it, and an unconstrained value by the registers that hold it.

use super::merge::{behind, complete, holders};
use super::parity::Turned;
use super::record::{Record, Who};
use super::state::{Frame, LoopsRun, Rounds, Status};
use super::value::Val;
use super::world::World;
use crate::symbolic::{Arg, Node, Sym, TermId, operands};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// A bound on the rounds of a loop that is no bound.
const FAR: i128 = 1 << 16;

/// A hash of 128 bits.
#[derive(Clone, Copy)]
struct Key(u64, u64);

impl Key {
    fn new() -> Self {
        Key(0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f)
    }

    fn add(&mut self, x: u64) {
        self.0 = (self.0 ^ x)
            .wrapping_mul(0xff51_afd7_ed55_8ccd)
            .rotate_left(29)
            ^ self.1;
        self.1 = (self.1.wrapping_add(x))
            .wrapping_mul(0xc4ce_b9fe_1a85_ec53)
            .rotate_left(31)
            ^ self.0;
    }

    fn wide(&mut self, x: i128) {
        self.add(x as u64);
        self.add((x >> 64) as u64);
    }

    fn done(self) -> u128 {
        u128::from(self.0) << 64 | u128::from(self.1)
    }
}

/// Records, each with what tells it apart from others.
pub(super) type Records = Vec<(u32, u64)>;

/// Names for terms, relative to a state.
struct Names<'w> {
    world: &'w World<'w, 'w>,
    fresh: FxHashMap<u32, u64>,
    /// The least round of each loop that is held.
    first: BTreeMap<(TermId, TermId), u32>,
    memo: FxHashMap<TermId, u64>,
}

impl World<'_, '_> {
    /// Live registers of a warp: used from here on, or by lanes that wait outside.
    pub(super) fn live_slots(&self, warp: usize) -> Vec<u32> {
        self.live_slots_at(warp, self.st.warps[warp].pc)
    }

    /// As [`live_slots`](Self::live_slots), once it has gone straight on to a step.
    fn live_slots_at(&self, warp: usize, pc: u32) -> Vec<u32> {
        let w = &self.st.warps[warp];
        if w.status == Status::Done {
            return Vec::new();
        }
        let program = &self.env.programs[w.role as usize];
        let mut live = program.live[pc as usize].clone();
        for f in &w.frames {
            let (saved, end) = match f {
                Frame::If {
                    saved, end, other, ..
                } => {
                    if *other != 0 {
                        // Lanes that have yet to run the other side: all of it may be used.
                        let from = pc as usize;
                        for i in from..=*end as usize {
                            live.join(&program.live[i]);
                        }
                    }
                    (*saved, *end)
                }
                Frame::Elect { saved, end } | Frame::Loop { saved, end, .. } => (*saved, *end),
            };
            if saved != w.active {
                live.join(&program.live[end as usize]);
            }
            if let Frame::Loop {
                var: Some(v),
                rounds: Rounds::Known,
                ..
            } = f
                && let Some(slot) = self.env.slots.of(*v)
            {
                live.add(slot);
            }
        }
        live.iter().collect()
    }

    /// Terms that are held.
    pub(super) fn held(&self) -> BTreeSet<TermId> {
        let mut held = BTreeSet::new();
        let mut add = |v: &Val| match v {
            Val::Sym(s) => {
                held.insert(s.term);
            }
            Val::Pred { term, .. } => {
                held.insert(*term);
            }
            _ => {}
        };
        for w in 0..self.st.warps.len() {
            for s in self.live_slots(w) {
                self.st.warps[w].held(s).iter().for_each(|h| add(&h.val));
            }
        }
        self.st.words.values().for_each(|w| add(&w.0));
        for w in &self.st.warps {
            held.insert(w.root.round);
            for f in &w.frames {
                if let Frame::Loop {
                    rounds: Rounds::Term { of, inside, .. } | Rounds::While { of, inside, .. },
                    ..
                } = f
                {
                    held.extend([*of, inside.round]);
                    held.extend(inside.loops.iter().map(|l| l.count));
                }
            }
        }
        for b in &self.st.bars {
            held.extend(b.terms.keys());
        }
        held.extend(self.st.copied.values().map(|c| c.1));
        // And all that they are made of.
        let mut open: Vec<TermId> = held.iter().copied().collect();
        while let Some(t) = open.pop() {
            let mut add = |t: TermId| {
                if held.insert(t) {
                    open.push(t);
                }
            };
            let node = self.env.terms.node(t);
            match node {
                Node::Loop { count, around, .. } => {
                    add(count);
                    add(around);
                }
                Node::Round { around, of, .. } => {
                    add(around);
                    add(of);
                }
                Node::Counter { of, .. } => add(of),
                Node::Copied(of, ..) => add(of),
                Node::Sum(ref list) => list.iter().for_each(|e| add(e.0)),
                Node::Product(ref list) => list.iter().for_each(|&t| add(t)),
                _ => {}
            }
            operands(&node, &mut |a| match a {
                Arg::Num(_) => {}
                Arg::Sym(Sym { term, .. }) | Arg::Pred { term, .. } => add(*term),
            });
        }
        held
    }

    /// The same for states in which all warps are at the same point, whatever is known.
    pub(super) fn point(&self) -> u128 {
        let held = self.held();
        let mut names = Names {
            world: self,
            fresh: FxHashMap::default(),
            first: first_rounds(self, &held),
            memo: FxHashMap::default(),
        };
        let mut key = Key::new();
        let turned = self.env.parities.turned(&self.st);
        for w in 0..self.st.warps.len() {
            self.warp_key(w, &turned, &mut names, &mut key);
        }
        for (i, b) in self.st.bars.iter().enumerate() {
            let parity = self
                .env
                .parities
                .of_phase(&turned, self.env.array_of(i), b.phase);
            let init = b.init.map(|i| self.st.records.get(i));
            for x in [
                u64::from(b.count),
                u64::from(b.arrivals),
                b.bytes as u64,
                u64::from(parity),
                u64::from(b.fenced) << 1 | u64::from(b.copied),
                init.map_or(u64::MAX, |r| u64::from(r.warp) << 40 | r.lanes),
            ] {
                key.add(x);
            }
            for (&term, &n) in &b.terms {
                let name = names.of(term);
                key.add(name);
                key.wide(n);
            }
        }
        for m in &self.st.meetings {
            key.add(u64::from(m.came));
            key.add(u64::from(m.expected));
        }
        for (&(cta, byte), (v, ty)) in &self.st.words {
            key.add(u64::from(cta) << 32 | u64::from(byte));
            let name = names.val(v);
            key.add(name);
            key.add(*ty as u64);
        }
        for (&(cta, byte), &(end, copy)) in &self.st.copied {
            key.add(u64::from(cta) << 32 | u64::from(byte));
            key.add(u64::from(end));
            let name = names.of(copy);
            key.add(name);
        }
        self.decided_key(&mut names, &mut key);
        key.done()
    }

    /// The same for states at the same point in which the same is known.
    pub(super) fn key(&self) -> u128 {
        let point = self.point();
        let mut key = Key(point as u64, (point >> 64) as u64);
        let (holders, complete) = (holders(&self.st), complete(&self.st));
        for h in &holders {
            behind(h, &complete).for_each(|n| key.add(u64::from(n)));
        }
        let known = |(i, id): (u32, u64)| {
            let mut key = Key(id, self.st.records.get(i).settled.into());
            for h in &holders {
                let bits = u64::from(h.seen.has(i)) | u64::from(h.fenced.has(i)) << 1;
                key.add(bits);
            }
            key.0
        };
        let mut records: Vec<u64> = self.records().into_iter().map(known).collect();
        records.sort_unstable();
        records.into_iter().for_each(|r| key.add(r));
        key.done()
    }

    fn warp_key(&self, i: usize, turned: &Turned, names: &mut Names<'_>, key: &mut Key) {
        let w = &self.st.warps[i];
        key.add(u64::from(w.pc) << 32 | u64::from(w.active));
        key.add(u64::from(w.status == Status::Done));
        if w.status == Status::Done {
            return;
        }
        let in_meeting = matches!(w.status, Status::Meeting { .. });
        key.add(u64::from(in_meeting));
        key.add(u64::from(w.at_cluster.is_some()));
        let each = 4;
        let start = i - w.index as usize % each;
        let end = (start + each).min(self.warps_of(w.cta).end);
        let least = (start..end)
            .map(|w| self.st.warps[w].commits)
            .min()
            .unwrap_or(0);
        key.add(u64::from(w.commits - least));
        key.add(u64::from(w.commits - w.waited));
        key.add(w.know.some.len() as u64);
        w.know.some.iter().for_each(|s| key.add(s.0));
        for (lane, groups) in &w.bulk {
            key.add(u64::from(*lane) << 32 | groups.len() as u64);
        }
        key.add(w.copies.len() as u64);
        w.copies.iter().for_each(|c| key.add(c.0));
        key.add(u64::from(w.registers));
        for f in &w.frames {
            match f {
                Frame::If {
                    saved,
                    other,
                    maybe,
                    ..
                } => {
                    key.add(u64::from(*saved) << 32 | u64::from(*other));
                    key.add(u64::from(*maybe));
                }
                Frame::Elect { saved, .. } => key.add(u64::from(*saved)),
                Frame::Loop {
                    saved,
                    rounds,
                    maybe,
                    ..
                } => {
                    key.add(u64::from(*saved) << 1 | u64::from(*maybe));
                    self.rounds_key(rounds, names, key);
                }
            }
        }
        self.loops_key(&w.root.loops, names, key);
        let outcome = self.outcome(w);
        let pc = outcome.as_ref().map_or(w.pc, |o| o.end);
        for s in self.live_slots_at(i, pc) {
            let numbers = outcome.as_ref().and_then(|o| o.numbers.get(&s));
            if let Some(numbers) = numbers {
                let by = self.turned_by(turned, w, s);
                numbers.iter().for_each(|n| key.add(n ^ by));
                continue;
            }
            let Some(held) = w.held(s) else { continue };
            key.add(u64::from(s) << 40 | held.lanes);
            // A variable that a `while` counts is kept relative to the iterations decided so far.
            if let Val::Sym(sym) = held.val
                && self.env.stepped_slots[w.role as usize][s as usize]
                && let Some(of) = self.counted_by_while(w, sym.term)
            {
                let lo = self.env.terms.range_of(&self.st.decided, of).lo;
                let name = names.of(of);
                key.add(name);
                key.wide(sym.off + lo);
                continue;
            }
            let name = match self.turned(turned, w, s, held) {
                Some(val) => names.val(&val),
                None => names.val(&held.val),
            };
            key.add(name);
        }
    }

    fn loops_key(&self, loops: &[LoopsRun], names: &mut Names<'_>, key: &mut Key) {
        for l in loops {
            let name = names.of(l.count);
            key.add(name);
            key.add(u64::from(l.group) << 32 | u64::from(l.n));
        }
    }

    fn rounds_key(&self, rounds: &Rounds, names: &mut Names<'_>, key: &mut Key) {
        match rounds {
            Rounds::Known => key.add(1),
            Rounds::Once => key.add(2),
            Rounds::Term {
                of,
                off,
                round,
                inside,
            } => {
                let lo = self.env.terms.range_of(&self.st.decided, *of).lo;
                let name = names.of(*of);
                key.add(name);
                key.wide(i128::from(*round) - off - lo);
                let name = names.of(inside.round);
                key.add(name);
                self.loops_key(&inside.loops, names, key);
            }
            Rounds::While { of, inside, .. } => {
                let name = names.of(*of);
                key.add(name);
                let name = names.of(inside.round);
                key.add(name);
                self.loops_key(&inside.loops, names, key);
            }
        }
    }

    fn decided_key(&self, names: &mut Names<'_>, key: &mut Key) {
        let mut list: Vec<[i128; 5]> = Vec::new();
        for (&t, r) in self.st.decided.ranges.iter() {
            let relative = matches!(self.env.terms.node(t), Node::Loop { .. }) && !self.is_ahead(t);
            let name = names.of(t);
            // A bound far away bounds nothing.
            let span = if r.hi - r.lo > FAR { -1 } else { r.hi - r.lo };
            // Who computes with a count needs it, or what it leaves when divided.
            let left = match self.env.period {
                _ if !self.is_computed_with(t) => 0,
                0 => r.lo,
                period => r.lo.rem_euclid(i128::from(period)),
            };
            let (a, b) = if relative { (left, span) } else { (r.lo, r.hi) };
            list.push([i128::from(name), a, b, r.modulus, r.residue]);
            // A part of a count, relative to the whole.
            if self.env.has_rests
                && let Some(whole) = self.env.terms.whole_loop(t)
                && self.is_rest_ahead(t, whole)
            {
                let lo = self.env.terms.range_of(&self.st.decided, whole).lo;
                list.push([i128::from(name), lo - r.lo, 2, 0, 2]);
            }
        }
        for (&t, &yes) in self.st.decided.truths.iter() {
            let name = names.of(t);
            list.push([i128::from(name), i128::from(yes), 1, 0, 0]);
        }
        for (&t, &(modulus, out)) in &self.st.decided.residues {
            let name = names.of(t);
            list.push([i128::from(name), modulus, out, 0, 1]);
        }
        list.sort_unstable();
        list.into_iter().flatten().for_each(|x| key.wide(x));
    }

    /// The records of the state, each with what tells it apart from others.
    pub(super) fn records(&self) -> Records {
        let mut waited = self.waited();
        let list = self.st.records.live();
        list.map(|(i, r)| (i, self.record_id(r, waited.remove(&i))))
            .collect()
    }

    fn record_id(&self, r: &Record, waited: Option<Key>) -> u64 {
        let w = &self.st.warps[r.warp as usize];
        // Whose an engine's work was does not matter once it is done.
        let engine = matches!(r.who, Who::Load { .. } | Who::Store | Who::Product);
        let whose = match engine && waited.is_none() {
            true => u32::MAX,
            false => r.warp,
        };
        let mut key = Key::new();
        for x in [
            u64::from(whose).wrapping_shl(40) ^ u64::from(whose) ^ r.lanes,
            u64::from(r.cta) << 32 | u64::from(r.tile),
            u64::from(r.write) | u64::from(r.atomic) << 1 | u64::from(r.bulk) << 2,
            u64::from(!engine && r.epoch == w.epoch),
            match r.who {
                Who::Lanes => 0,
                Who::Load { bar, phase } => {
                    let now = self.st.bars[bar as usize].phase;
                    1 | u64::from(bar) << 8 | u64::from((now - phase).min(2)) << 40
                }
                Who::Store => 2,
                Who::Product => 3,
                Who::Copy => 4,
                Who::Passed => 5,
                Who::Init => 6,
                Who::Reach => 7,
            },
        ] {
            key.add(x);
        }
        key.add(r.runs.number());
        if let Some(waited) = waited {
            key.add(waited.0);
        }
        key.0
    }

    /// Where records are waited for.
    fn waited(&self) -> FxHashMap<u32, Key> {
        let mut places: FxHashMap<u32, Key> = FxHashMap::default();
        let mut at = |i: u32, kind: u64, place: u64| {
            let key = places.entry(i).or_insert(Key::new());
            key.add(kind << 48 | place);
        };
        for w in &self.st.warps {
            w.apart.iter().for_each(|&i| at(i, 1, 0));
            w.fencing.iter().for_each(|&i| at(i, 9, 0));
            w.open.iter().for_each(|&i| at(i, 2, 0));
            for (_, groups) in &w.bulk {
                for (back, g) in groups.iter().rev().enumerate() {
                    g.iter().for_each(|&i| at(i, 3, back as u64));
                }
            }
            for (back, (_, g)) in w.copies.iter().rev().enumerate() {
                g.iter().for_each(|&i| at(i, 4, back as u64));
            }
            w.copying.iter().for_each(|&i| at(i, 8, 0));
        }
        for (number, records) in self.st.products.iter().flatten() {
            for &i in records {
                let warp = self.st.records.get(i).warp as usize;
                let back = self.st.warps[warp].commits.wrapping_sub(*number);
                at(i, 5, u64::from(back));
            }
        }
        for (b, bar) in self.st.bars.iter().enumerate() {
            for &(i, phase) in &bar.passed {
                let back = (i64::from(bar.phase) - phase).min(4);
                at(i, 6, (b as u64) << 8 | back as u64);
            }
            bar.init.iter().for_each(|&i| at(i, 7, b as u64));
        }
        places
    }
}

/// The least round of each loop among terms.
pub(super) fn first_rounds(
    w: &World<'_, '_>,
    held: &BTreeSet<TermId>,
) -> BTreeMap<(TermId, TermId), u32> {
    let mut first: BTreeMap<(TermId, TermId), u32> = BTreeMap::new();
    for &t in held {
        if let Node::Round { around, of, round } = w.env.terms.node(t) {
            let at = first.entry((around, of)).or_insert(round);
            *at = (*at).min(round);
        }
    }
    first
}

impl Names<'_> {
    fn val(&mut self, v: &Val) -> u64 {
        let mut key = Key::new();
        match v {
            Val::Uni(x) => [1, *x].into_iter().for_each(|x| key.add(x)),
            Val::Lanes(x) => {
                key.add(2);
                x.iter().for_each(|&x| key.add(x));
            }
            Val::Sym(s) => {
                let name = self.of(s.term);
                let off = self.off(s);
                [3, name].into_iter().for_each(|x| key.add(x));
                key.wide(off);
            }
            Val::Pred { term, not } => {
                let name = self.of(*term);
                [4, name, u64::from(*not)]
                    .into_iter()
                    .for_each(|x| key.add(x));
            }
            Val::Opaque => key.add(5),
            Val::Within(lo, hi) => [6, *lo, *hi].into_iter().for_each(|x| key.add(x)),
        }
        key.0
    }

    /// What a term lacks. Of a count that is yet to be known and a number more (`sums`), only what
    /// is left of the number and the rounds so far matters.
    fn off(&self, s: &Sym) -> i128 {
        let (env, period) = (self.world.env, i128::from(self.world.env.period));
        match env.terms.node(s.term) {
            Node::Loop { .. } if period > 0 => {
                let lo = env.terms.range_of(&self.world.st.decided, s.term).lo;
                (s.off + lo).rem_euclid(period)
            }
            _ => s.off,
        }
    }

    fn arg(&mut self, a: &Arg) -> u64 {
        let mut key = Key::new();
        match *a {
            Arg::Num(x) => {
                key.add(1);
                key.wide(x);
            }
            Arg::Sym(s) => return self.val(&Val::Sym(s)),
            Arg::Pred { term, not } => return self.val(&Val::Pred { term, not }),
        }
        key.0
    }

    /// The constant of a comparison; for a loop, relative to the iterations decided so far.
    fn bound(&self, t: TermId, k: i128) -> i128 {
        let env = self.world.env;
        match env.terms.node(t) {
            Node::Loop { .. } => k - env.terms.range_of(&self.world.st.decided, t).lo,
            _ => k,
        }
    }

    fn of(&mut self, t: TermId) -> u64 {
        if let Some(&n) = self.memo.get(&t) {
            return n;
        }
        let mut key = Key::new();
        match self.world.env.terms.node(t) {
            Node::Param(p) => [1, u64::from(p)].into_iter().for_each(|x| key.add(x)),
            Node::Special(name) => {
                key.add(2);
                name.bytes().for_each(|b| key.add(u64::from(b)));
            }
            Node::Fresh(n) => {
                let next = self.fresh.len() as u64;
                let n = *self.fresh.entry(n).or_insert(next);
                [3, n].into_iter().for_each(|x| key.add(x));
            }
            Node::Function(kind, args, ty) => {
                let head = [4, u64::from(kind), ty as u64];
                head.into_iter().for_each(|x| key.add(x));
                for a in args.iter() {
                    let n = self.arg(a);
                    key.add(n);
                }
            }
            Node::Test(kind, args) => {
                [15, u64::from(kind)].into_iter().for_each(|x| key.add(x));
                for a in args.iter() {
                    let n = self.arg(a);
                    key.add(n);
                }
            }
            // The order of parts is that in which they were met: it does not matter.
            Node::Sum(list) => {
                let mut all: Vec<(u64, i128)> =
                    list.iter().map(|&(t, k)| (self.of(t), k)).collect();
                all.sort_unstable();
                key.add(16);
                for (name, k) in all {
                    key.add(name);
                    key.wide(k);
                }
            }
            Node::Product(list) => {
                let mut all: Vec<u64> = list.iter().map(|&t| self.of(t)).collect();
                all.sort_unstable();
                key.add(17);
                all.into_iter().for_each(|x| key.add(x));
            }
            Node::Div(s, k) => self.scaled(18, s, k, &mut key),
            Node::Rem(s, k) => self.scaled(19, s, k, &mut key),
            Node::Wrap(s, ty) => self.scaled(20, s, ty as i128, &mut key),
            Node::Quotient(a, b) => self.pair(21, &a, &b, &mut key),
            Node::Remainder(a, b) => self.pair(22, &a, &b, &mut key),
            Node::Min(a, b) => self.pair(25, &a, &b, &mut key),
            Node::Max(a, b) => self.pair(26, &a, &b, &mut key),
            Node::Global(a, ty) => {
                let n = self.arg(&a);
                [23, n, ty as u64].into_iter().for_each(|x| key.add(x));
            }
            Node::Copied(copy, a, ty) => {
                let (c, n) = (self.of(copy), self.arg(&a));
                [24, c, n, ty as u64].into_iter().for_each(|x| key.add(x));
            }
            Node::Less(t, k) => {
                let (name, k) = (self.of(t), self.bound(t, k));
                [5, name].into_iter().for_each(|x| key.add(x));
                key.wide(k);
            }
            Node::Equal(t, k) => {
                let (name, k) = (self.of(t), self.bound(t, k));
                [6, name].into_iter().for_each(|x| key.add(x));
                key.wide(k);
            }
            Node::And(a, b) => self.pair(7, &a, &b, &mut key),
            Node::Or(a, b) => self.pair(8, &a, &b, &mut key),
            Node::Iterations(a, b, c) => {
                self.pair(9, &a, &b, &mut key);
                let n = self.arg(&c);
                key.add(n);
            }
            Node::Loop {
                count,
                around,
                group,
                n,
            } => {
                let (c, a) = (self.of(count), self.of(around));
                [10, c, a, u64::from(group) << 32 | u64::from(n)]
                    .into_iter()
                    .for_each(|x| key.add(x));
            }
            Node::While(depth) => [11, u64::from(depth)].into_iter().for_each(|x| key.add(x)),
            Node::Round { around, of, round } => {
                let first = self.first.get(&(around, of)).copied().unwrap_or(0);
                let (a, o) = (self.of(around), self.of(of));
                [12, a, o, u64::from(round.wrapping_sub(first))]
                    .into_iter()
                    .for_each(|x| key.add(x));
            }
            Node::Outside => key.add(13),
            Node::Counter {
                of,
                round,
                from,
                step,
                to,
            } => {
                let o = self.of(of);
                let to = self.arg(&to);
                key.add(to);
                let first = match self.world.env.terms.node(of) {
                    Node::Loop { around, .. } => self.first.get(&(around, of)).copied(),
                    _ => None,
                };
                let round = round.wrapping_sub(first.unwrap_or(0));
                self.pair(14, &from, &step, &mut key);
                [o, u64::from(round)].into_iter().for_each(|x| key.add(x));
            }
        }
        self.memo.insert(t, key.0);
        key.0
    }

    fn scaled(&mut self, tag: u64, s: Sym, k: i128, key: &mut Key) {
        let name = self.of(s.term);
        [tag, name].into_iter().for_each(|x| key.add(x));
        key.wide(s.off);
        key.wide(k);
    }

    fn pair(&mut self, tag: u64, a: &Arg, b: &Arg, key: &mut Key) {
        let (a, b) = (self.arg(a), self.arg(b));
        [tag, a, b].into_iter().for_each(|x| key.add(x));
    }
}
