//! Removes happens-before facts, records, terms and decisions that no longer matter from a state.
//!
//! Removal is sound, because a proof cannot rely on a removed fact.

use super::canon::first_rounds;
use super::code::Waiters;
use super::know::Shared;
use super::lanes::{ALL, ELECTED};
use super::state::{Status, Warp};
use super::value::{Held, Val};
use super::world::World;
use crate::symbolic::{Node, Range, Sym, TermId};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// Terms nested deeper than this are forgotten: any value will do.
const DEEP: u32 = 40;

impl World<'_, '_> {
    /// Forgets what no longer matters.
    ///
    /// What a barrier handed on stays there if states are taken together: in one of them somebody
    /// may have heard of it, who in another is yet to wait for it.
    pub(super) fn tidy(&mut self, together: bool) {
        self.st.warps.iter_mut().for_each(|w| w.know.tidy());
        match together {
            true => self.drop_phases(),
            false => self.drop_told(),
        }
        self.settle();
        self.drop_records();
        self.shorten();
        self.forget_decisions();
    }

    /// Forgets that the phase before the last of a barrier is complete, but for those who wait for
    /// it themselves by its parity: for others that is soon long ago, and no better than nothing.
    fn drop_phases(&mut self) {
        let mut complete = super::merge::complete(&self.st);
        // That the cluster has met at all is never long ago.
        complete.pop();
        let arrays: Vec<usize> = (0..self.env.bars)
            .map(|b| self.env.array_of(b as usize))
            .collect();
        let each = self.env.bars as usize;
        let drop = |know: &mut Shared, waits: &dyn Fn(usize) -> bool| {
            for (i, &complete) in complete.iter().enumerate() {
                if know.phases[i] + 1 == complete && !waits(i) {
                    know.phases[i] -= 1;
                }
            }
        };
        for w in &mut self.st.warps {
            let (cta, role) = (w.cta as usize, w.role as usize);
            let who = |i: usize| match (cta * each..(cta + 1) * each).contains(&i) {
                true => self.env.waits[role][arrays[i % each]],
                false => Waiters::Nobody,
            };
            // Without knowledge of its own the elected lane has that of all.
            let apart = w.know.some.iter().any(|(set, _)| *set == ELECTED);
            let least = match apart {
                true => Waiters::All,
                false => Waiters::One,
            };
            drop(&mut w.know.all, &|i| who(i) >= least);
            for (_, know) in &mut w.know.some {
                drop(know, &|i| who(i) != Waiters::Nobody);
            }
        }
        for b in &mut self.st.bars {
            drop(&mut b.came, &|_| false);
            drop(&mut b.done, &|_| false);
        }
        for m in &mut self.st.meetings {
            drop(&mut m.know, &|_| false);
            drop(&mut m.done, &|_| false);
        }
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
                self.st.bars[i].done = self.env.nothing.clone();
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
                self.st.meetings[i].done = self.env.nothing.clone();
            }
        }
    }

    /// Notes which work of engines, and which reaches into other CTAs, somebody has waited for.
    fn settle(&mut self) {
        let late: Vec<u32> = self
            .st
            .records
            .live()
            .filter(|(_, r)| !r.settled)
            .map(|r| r.0)
            .collect();
        for i in late {
            if self.is_waited_for(i) {
                self.st.records.get_mut(i).settled = true;
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
            keep(&mut w.fencing);
            keep(&mut w.open);
            w.bulk.iter_mut().flat_map(|b| &mut b.1).for_each(keep);
            w.copies.iter_mut().for_each(|c| keep(&mut c.1));
            keep(&mut w.copying);
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
        let mut new: FxHashMap<TermId, TermId> = FxHashMap::default();
        for w in 0..self.st.warps.len() {
            for s in self.live_slots(w) {
                if let Some(Held {
                    val: Val::Sym(Sym { term, .. }),
                    ..
                }) = self.st.warps[w].held(s)
                    && let &term = term
                    && deep(self, term)
                    && !new.contains_key(&term)
                {
                    let range = self.env.terms.range_of(&self.st.decided, term);
                    let fresh = self.fresh(Range::ANY).term;
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
            let spilled = w.spilled.iter_mut().map(|s| &mut s.1);
            let all = Rc::make_mut(&mut w.regs).iter_mut().chain(spilled);
            all.for_each(|r| change(&mut r.val));
        }
        self.st.words.values_mut().for_each(|w| change(&mut w.0));
    }

    /// Forgets what was decided of terms that nobody can ask about again.
    fn forget_decisions(&mut self) {
        let held = self.held();
        let first = first_rounds(self, &held);
        let terms = &self.env.terms;
        // What others may still come to: a value that is held, or a loop of an iteration that is
        // not over everywhere.
        let ahead = |t: TermId| {
            let loops = || match terms.node(t) {
                Node::Loop { around, .. } => match terms.node(around) {
                    Node::Outside => true,
                    Node::Round { around, of, round } => {
                        first.get(&(around, of)).is_some_and(|&f| round >= f)
                    }
                    _ => false,
                },
                _ => false,
            };
            terms.is_launch_constant(t) || held.contains(&t) || loops()
        };
        let part = |t: TermId| match terms.node(t) {
            Node::Sum(list) => list.iter().all(|&(t, _)| ahead(t)),
            _ => ahead(t),
        };
        let keeps = |t: TermId| match terms.node(t) {
            Node::Less(t, _) | Node::Equal(t, _) => part(t),
            _ => part(t),
        };
        self.st.decided.ranges.retain(keeps);
        self.st.decided.truths.retain(keeps);
        self.st.decided.residues.retain(|t, _| keeps(*t));
        // That a term is not a number it is out of reach of says nothing.
        let ranges = |t: TermId| terms.range_of(&self.st.decided, t);
        let implied = |t: TermId| match terms.node(t) {
            Node::Equal(of, k) => !ranges(of).has(k),
            _ => false,
        };
        let gone: Vec<TermId> = self
            .st
            .decided
            .truths
            .keys()
            .copied()
            .filter(|&t| implied(t))
            .collect();
        for t in gone {
            self.st.decided.truths.remove(t);
        }
    }
}

/// Do those of a warp who wait for an mbarrier know that a phase is complete?
fn knows_phase(w: &Warp, who: Waiters, bar: usize, phase: u32) -> bool {
    match who {
        Waiters::Nobody => true,
        Waiters::One => w.know.phases(ELECTED, bar) >= phase,
        Waiters::All => w.know.phases(ALL, bar) >= phase,
    }
}
