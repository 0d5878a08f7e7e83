//! What a state can do without: knowledge, records, terms and decisions that no longer matter.
//!
//! To forget is safe: who does not know something cannot rely on it.

use super::canon::first_rounds;
use super::code::Waiters;
use super::know::Know;
use super::state::{Status, Warp};
use super::term::{Arg, Node, Sym, TermId};
use super::value::Val;
use super::world::World;
use std::collections::HashMap;

/// Terms nested deeper than this are forgotten: any value will do.
const DEEP: u32 = 40;

impl World<'_, '_> {
    /// Forgets what no longer matters.
    pub(super) fn tidy(&mut self) {
        self.drop_told();
        self.drop_hearsay();
        self.drop_records();
        self.shorten();
        self.forget_decisions();
    }

    /// Forgets what barriers handed on to all who wait for them.
    fn drop_told(&mut self) {
        let each = self.env.warps as usize;
        for i in 0..self.st.bars.len() {
            let cta = i / self.env.bars as usize;
            let array = self.env.array_of(i);
            let phase = self.st.bars[i].phase;
            let all = self.st.warps[cta * each..(cta + 1) * each].iter().all(|w| {
                let who = self.env.waits[w.role as usize][array];
                w.status == Status::Done || knows_phase(w, who, i, phase)
            });
            if all {
                let n = self.env.all_barriers();
                self.st.bars[i].done = Know::new(n);
            }
        }
        for i in 0..self.st.meetings.len() {
            let over = self.st.meetings[i].over;
            let at = self.env.first_meeting() + i;
            let inside = |w: &Warp| match i == self.env.cluster_meeting() {
                true => true,
                false => w.cta as usize == i / (self.env.kernel.named.len() + 1),
            };
            let waits = |w: &Warp| {
                matches!(w.status, Status::Meeting { meeting, .. } if meeting == i)
                    || i == self.env.cluster_meeting() && w.at_cluster.is_some()
            };
            let all = self
                .st
                .warps
                .iter()
                .filter(|w| inside(w))
                .all(|w| !waits(w) || w.know.all.phases[at] == over);
            if all {
                let n = self.env.all_barriers();
                self.st.meetings[i].done = Know::new(n);
            }
        }
    }

    /// Forgets what is known of accesses and phases by those who have no use for it.
    fn drop_hearsay(&mut self) {
        let role = |w: &Warp| 1u64 << w.role.min(63);
        let env = self.env;
        let arrays: Vec<usize> = (0..self.st.bars.len()).map(|b| env.array_of(b)).collect();
        for w in &mut self.st.warps {
            for (bar, &a) in arrays.iter().enumerate() {
                let p = self.env.parties[a];
                if (p.wait | p.arrive) & role(w) == 0 {
                    w.know.all.phases[bar] = 0;
                    if let Some((_, k)) = &mut w.know.some {
                        k.phases[bar] = 0;
                    }
                }
            }
        }
        let mut of_bar: HashMap<u32, (usize, u32)> = HashMap::new();
        let index = |bar: usize| bar as u32 % self.env.bars - self.env.first_bar[arrays[bar]];
        for (bar, b) in self.st.bars.iter().enumerate() {
            of_bar.extend(b.passed.iter().map(|p| (p.0, (arrays[bar], index(bar)))));
        }
        // A barrier hands on the phases that who waits for it goes by.
        for b in 0..self.st.bars.len() {
            for other in 0..self.st.bars.len() {
                let guards = &self.env.guards.1[arrays[other]];
                let p = self.env.parties[arrays[other]];
                let heeded = (p.wait | p.arrive) & self.env.parties[arrays[b]].wait != 0;
                let own = guards.is_empty()
                    || guards.contains(&(arrays[b] as u32)) && index(b) == index(other);
                if other != b && !(heeded && own) {
                    self.st.bars[b].came.phases[other] = 0;
                    self.st.bars[b].done.phases[other] = 0;
                }
            }
        }
        let mut records: Vec<(u32, u32, u64, u64)> = Vec::new();
        for (i, r) in self.st.records.live() {
            // Who may conflict with it, and who of them must have been told before others forget.
            let (touch, write) = match (of_bar.get(&i), self.env.touchers.get(r.tile as usize)) {
                (Some(&(a, _)), _) => (self.env.parties[a].arrive, self.env.parties[a].arrive),
                (None, Some(&t)) if !r.runs.is_empty() => t,
                _ => continue,
            };
            let heed = match r.write {
                false => write,
                // Those who only read have read what they were told of.
                true if write & !(1u64 << self.st.warps[r.warp as usize].role.min(63)) == 0 => {
                    write
                }
                true => touch,
            };
            records.push((i, r.warp, heed, touch));
        }
        for (i, warp, heed, touch) in records {
            let r = self.st.records.get(i);
            let (write, lanes) = (r.write, r.who == super::record::Who::Lanes);
            let (guards, place) = match of_bar.get(&i) {
                Some(&(a, n)) => (&self.env.guards.1[a], n),
                None => {
                    let t = &self.env.kernel.tiles[r.tile as usize];
                    let at = r.runs.first().map_or(0, |x| x.lo.saturating_sub(t.offset));
                    let stage = at / t.layout.stage_bytes().max(1);
                    (&self.env.guards.0[r.tile as usize], stage)
                }
            };
            let guard = |bar: usize| guards.contains(&(arrays[bar] as u32)) && index(bar) == place;
            let told = self.st.bars.iter().enumerate().any(|(n, b)| match write {
                // Those who read what was written have given it back.
                true => guard(n) && b.done.seen.has(i),
                false => {
                    let heeds = self.env.parties[arrays[n]].wait & heed != 0;
                    heeds && (b.came.seen.has(i) || b.done.seen.has(i))
                }
            });
            // Those who only read it may still have to learn of it.
            let due = self.st.bars.iter().zip(&arrays).any(|(b, &a)| {
                self.env.parties[a].wait & touch & !heed != 0
                    && (b.came.seen.has(i) || b.done.seen.has(i))
            });
            let known = || {
                heed == touch
                    && self
                        .st
                        .warps
                        .iter()
                        .filter(|w| role(w) & heed != 0)
                        .all(|w| {
                            let some = w.know.some.as_ref();
                            w.know.all.seen.has(i) || some.is_some_and(|(_, k)| k.seen.has(i))
                        })
            };
            if due && write || !told && !known() {
                continue;
            }
            self.st.records.get_mut(i).settled = true;
            // What waits for who fills the slot is kept where that waits; elsewhere it is hearsay.
            let kept = (0..self.st.bars.len()).any(|b| {
                let bar = &self.st.bars[b];
                guard(b) && (bar.came.seen.has(i) || bar.done.seen.has(i))
            });
            if kept {
                for b in 0..self.st.bars.len() {
                    if !guard(b) {
                        self.st.bars[b].came.forget(i);
                        self.st.bars[b].done.forget(i);
                    }
                }
            }
            for (n, w) in self.st.warps.iter_mut().enumerate() {
                if role(w) & heed == 0 && !(lanes && n as u32 == warp) {
                    w.know.forget(i);
                }
            }
            for (b, &a) in self.st.bars.iter_mut().zip(&arrays) {
                if self.env.parties[a].wait & heed == 0 {
                    b.came.forget(i);
                    b.done.forget(i);
                }
            }
        }
    }

    fn drop_records(&mut self) {
        // An init that all know of needs no record.
        for b in &mut self.st.bars {
            if let Some(i) = b.init
                && b.fenced
                && self.st.warps.iter().all(|w| w.know.all.seen.has(i))
            {
                b.init = None;
                self.st.records.get_mut(i).live = false;
            }
        }
        let dead = self.st.records.collect();
        if dead.is_empty() {
            return;
        }
        let keep = |list: &mut Vec<u32>| list.retain(|&i| !dead.has(i));
        for w in &mut self.st.warps {
            w.know.clear(&dead);
            keep(&mut w.apart);
            keep(&mut w.open);
            w.bulk.iter_mut().flat_map(|b| &mut b.1).for_each(keep);
            w.copies.iter_mut().for_each(keep);
        }
        for b in &mut self.st.bars {
            b.came.clear(&dead);
            b.done.clear(&dead);
            b.passed.retain(|p| !dead.has(p.0));
        }
        for m in &mut self.st.meetings {
            m.know.clear(&dead);
            m.done.clear(&dead);
        }
        for p in &mut self.st.products {
            p.iter_mut().for_each(|g| keep(&mut g.1));
        }
    }

    /// Forgets how very deep terms came about.
    fn shorten(&mut self) {
        let deep = |w: &Self, t: TermId| w.env.terms.depth(t) > DEEP;
        let mut new: HashMap<TermId, TermId> = HashMap::new();
        for w in 0..self.st.warps.len() {
            for s in self.live_slots(w) {
                if let Val::Sym(Sym { term, .. }) = self.st.warps[w].regs[s].val
                    && deep(self, term)
                    && !new.contains_key(&term)
                {
                    let range = self.env.terms.range_of(&self.st.decided, term);
                    let fresh = self.fresh(0).term;
                    self.st.decided.ranges.insert(fresh, range);
                    new.insert(term, fresh);
                }
            }
        }
        if new.is_empty() {
            return;
        }
        let change = |v: &mut Val| {
            if let Val::Sym(s) = v
                && let Some(&t) = new.get(&s.term)
            {
                s.term = t;
            }
        };
        for w in &mut self.st.warps {
            w.regs.iter_mut().for_each(|r| change(&mut r.val));
        }
        self.st.words.values_mut().for_each(change);
    }

    /// Forgets what was decided of terms that nobody can ask about again.
    fn forget_decisions(&mut self) {
        let held = self.held();
        let first = first_rounds(self, &held);
        let terms = &self.env.terms;
        let keeps = |t: TermId| {
            if terms.is_fixed(t) || held.contains(&t) {
                return true;
            }
            match terms.node(t) {
                // A loop that others may still come to.
                Node::Loop { around, .. } => match terms.node(around) {
                    Node::Outside => true,
                    Node::Round { around, of, round } => {
                        first.get(&(around, of)).is_some_and(|&f| round >= f)
                    }
                    _ => false,
                },
                Node::Less(a, b) | Node::Equal(a, b) => [a, b].iter().all(|a| match a {
                    Arg::Num(_) => true,
                    Arg::Sym(Sym { term, .. }) | Arg::Pred { term, .. } => {
                        held.contains(term) || terms.is_fixed(*term)
                    }
                }),
                _ => false,
            }
        };
        self.st.decided.ranges.retain(|t, _| keeps(*t));
        self.st.decided.truths.retain(|t, _| keeps(*t));
    }
}

/// Do those of a warp who wait for an mbarrier know that a phase is complete?
fn knows_phase(w: &Warp, who: Waiters, bar: usize, phase: u32) -> bool {
    let some = || match &w.know.some {
        Some((lanes, k)) => w.active & !lanes == 0 && k.phases[bar] >= phase,
        None => false,
    };
    match who {
        Waiters::Nobody => true,
        _ if w.know.all.phases[bar] >= phase => true,
        Waiters::One => some(),
        Waiters::All => false,
    }
}
