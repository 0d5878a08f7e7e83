//! The events that are ordered before a warp or a barrier (happens-before).

use super::bits::Bits;
use super::lanes::{ALL, ELECTED, LaneSet, rest};
use super::state::FIRST;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

/// Events that are known, by record, and phases, by barrier.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(super) struct Know {
    /// Records of accesses.
    pub(super) seen: Bits,
    /// Those that a proxy fence followed.
    pub(super) fenced: Bits,
    /// Those known of by an order too weak to see their data.
    pub(super) weak: Bits,
    /// By barrier: how many phases are known to be complete.
    pub(super) phases: Vec<u32>,
}

impl Know {
    /// Nothing, but that the phases before the first of each barrier are over.
    pub(super) fn new(barriers: usize) -> Self {
        Self {
            phases: vec![FIRST; barriers],
            ..Self::default()
        }
    }

    fn join(&mut self, other: &Know) {
        self.seen.join(&other.seen);
        self.fenced.join(&other.fenced);
        self.weak.join(&other.weak);
        self.join_phases(other);
    }

    fn join_weakly(&mut self, other: &Know, without: &Bits) {
        self.seen.join_without(&other.seen, without);
        self.fenced.join_without(&other.fenced, without);
        self.weak.join(&other.weak);
        self.weak.join_common(&other.seen, without);
        self.join_phases(other);
    }

    fn join_phases(&mut self, other: &Know) {
        for (a, b) in self.phases.iter_mut().zip(&other.phases) {
            *a = (*a).max(*b);
        }
    }

    fn clear(&mut self, dead: &Bits) {
        self.seen.clear(dead);
        self.fenced.clear(dead);
        self.weak.clear(dead);
    }

    /// Does another know all of it?
    fn is_within(&self, other: &Know) -> bool {
        self.seen.is_within(&other.seen)
            && self.fenced.is_within(&other.fenced)
            && self.weak.is_within(&other.weak)
            && self.phases_are_within(other)
    }

    /// Does another know all of it, as far as an order carries it that leaves out some records?
    fn is_within_weakly(&self, other: &Know, without: &Bits) -> bool {
        self.seen.is_within_either(&other.seen, without)
            && self.fenced.is_within_either(&other.fenced, without)
            && self.weak.is_within(&other.weak)
            && self.seen.common_is_within(without, &other.weak)
            && self.phases_are_within(other)
    }

    fn phases_are_within(&self, other: &Know) -> bool {
        let phases = self.phases.iter().zip(&other.phases);
        phases.fold(0, |more, (a, b)| more | u32::from(a > b)) == 0
    }

    fn sets(&self) -> [&Bits; 3] {
        [&self.seen, &self.fenced, &self.weak]
    }

    fn sets_mut(&mut self) -> [&mut Bits; 3] {
        [&mut self.seen, &mut self.fenced, &mut self.weak]
    }
}

/// What is known, shared by all states that know the same until one learns more.
#[derive(Clone, Default, Debug)]
pub(super) struct Shared(Rc<Know>);

impl Shared {
    pub(super) fn new(barriers: usize) -> Self {
        Self(Rc::new(Know::new(barriers)))
    }

    /// Takes in what another knows.
    pub(super) fn join(&mut self, other: &Shared) {
        if other.is_within(self) {
            return;
        }
        match self.is_within(other) {
            true => self.0 = Rc::clone(&other.0),
            false => Know::join(self, other),
        }
    }

    /// As [`join`](Self::join), where the order does not carry the data of some records.
    pub(super) fn join_weakly(&mut self, other: &Shared, without: &Bits) {
        if other.is_within_weakly(self, without) {
            return;
        }
        match other.seen.meets(without) || other.fenced.meets(without) {
            true => Know::join_weakly(self, other, without),
            false => self.join(other),
        }
    }

    /// Knows of a record.
    pub(super) fn add(&mut self, record: u32) {
        if !self.seen.has(record) {
            self.seen.add(record);
        }
    }

    /// Knows that a phase of a barrier is complete.
    pub(super) fn add_phase(&mut self, bar: usize, phase: u32) {
        if self.phases[bar] < phase {
            self.phases[bar] = phase;
        }
    }

    pub(super) fn clear(&mut self, dead: &Bits) {
        if self.sets().iter().any(|s| s.meets(dead)) {
            Know::clear(self, dead);
        }
    }

    /// Knows of records what another knows of others, as told by `to`: mine, theirs.
    pub(super) fn copy(&mut self, other: &Know, to: &[(u32, u32)]) {
        for set in 0..3 {
            let theirs = other.sets()[set];
            for &(mine, _) in to.iter().filter(|t| theirs.has(t.1)) {
                self.sets_mut()[set].add(mine);
            }
        }
    }

    /// Knows of records no more than another knows of those they are the same as; says whether
    /// that is less.
    pub(super) fn restrict(&mut self, other: &Know, same: &Same) -> bool {
        let lost = [0, 1].map(|set| same.lost(self.sets()[set], other.sets()[set]));
        let less = lost.iter().any(Option::is_some);
        if less {
            for (mine, lost) in self.sets_mut().into_iter().zip(&lost) {
                lost.iter().for_each(|l| mine.clear(l));
            }
        }
        less
    }
}

impl Deref for Shared {
    type Target = Know;
    fn deref(&self) -> &Know {
        &self.0
    }
}

impl DerefMut for Shared {
    fn deref_mut(&mut self) -> &mut Know {
        Rc::make_mut(&mut self.0)
    }
}

/// Which records of two states are the same.
#[derive(Default)]
pub(super) struct Same {
    /// By mine: one of theirs, or [`NOBODY`].
    by_mine: Vec<u32>,
    /// Mine whose one of theirs has the same number: those are compared word by word.
    equal: Bits,
    /// Mine that are the same as several of theirs, with another one each.
    more: Vec<(u32, u32)>,
}

const NOBODY: u32 = u32::MAX;

impl Same {
    pub(super) fn add(&mut self, mine: u32, theirs: u32) {
        let at = mine as usize;
        if self.by_mine.len() <= at {
            self.by_mine.resize(at + 1, NOBODY);
        }
        match self.by_mine[at] {
            NOBODY if mine == theirs => {
                self.by_mine[at] = theirs;
                self.equal.add(mine);
            }
            NOBODY => self.by_mine[at] = theirs,
            _ => self.more.push((mine, theirs)),
        }
    }

    /// What I know that they do not, if there is anything.
    fn lost(&self, mine: &Bits, theirs: &Bits) -> Option<Bits> {
        let moved = mine.iter_without(&self.equal).filter(|&m| {
            let i = self.by_mine.get(m as usize).copied().unwrap_or(NOBODY);
            i != NOBODY && !theirs.has(i)
        });
        let more = self.more.iter();
        let more = more.filter(|&&(m, i)| mine.has(m) && !theirs.has(i));
        let mut others = moved.chain(more.map(|m| m.0)).peekable();
        if others.peek().is_none() && self.equal.common_is_within(mine, theirs) {
            return None;
        }
        let mut lost = Bits::default();
        lost.join_common(mine, &self.equal);
        lost.clear(theirs);
        others.for_each(|m| lost.add(m));
        Some(lost)
    }
}

/// What the lanes of a warp know.
#[derive(Clone, Debug)]
pub(super) struct WarpKnow {
    /// Every lane.
    pub(super) all: Shared,
    /// Sets of lanes, apart from each other and by ascending number, that know more, until they
    /// meet.
    pub(super) some: Vec<(LaneSet, Shared)>,
}

impl WarpKnow {
    pub(super) fn new(nothing: &Shared) -> Self {
        Self {
            all: nothing.clone(),
            some: Vec::new(),
        }
    }

    /// Does something hold of what each of some lanes knows?
    fn each(&self, lanes: LaneSet, holds: impl Fn(&Know) -> bool) -> bool {
        if holds(&self.all) {
            return true;
        }
        let know = self.some.iter().filter(|(_, k)| holds(k));
        let who = know.fold(0, |who, (set, _)| who | set);
        rest(lanes, who) == 0
    }

    pub(super) fn seen(&self, lanes: LaneSet, record: u32) -> bool {
        self.each(lanes, |k| k.seen.has(record))
    }

    pub(super) fn fenced(&self, lanes: LaneSet, record: u32) -> bool {
        self.each(lanes, |k| k.fenced.has(record))
    }

    pub(super) fn weak(&self, lanes: LaneSet, record: u32) -> bool {
        self.each(lanes, |k| k.weak.has(record))
    }

    /// Phases of a barrier that all of some lanes know to be complete.
    pub(super) fn phases(&self, lanes: LaneSet, bar: usize) -> u32 {
        let least = self.all.phases[bar];
        let more = self.some.iter().map(|(_, k)| k.phases[bar]);
        let more = more.filter(|&p| p > least && self.each(lanes, |k| k.phases[bar] >= p));
        more.max().unwrap_or(least)
    }

    /// What some lanes can hand on.
    pub(super) fn told(&self, lanes: LaneSet) -> impl Iterator<Item = &Shared> {
        let some = self.some.iter().filter(move |(set, _)| set & lanes != 0);
        [&self.all].into_iter().chain(some.map(|s| &s.1))
    }

    /// Has some lanes learn something.
    pub(super) fn learn(&mut self, lanes: LaneSet, mut learn: impl FnMut(&mut Shared)) {
        if lanes == ALL {
            learn(&mut self.all);
            return;
        }
        let mut open = lanes;
        let mut split = Vec::new();
        for (set, know) in &mut self.some {
            let (inside, outside) = (*set & lanes, *set & !lanes);
            open &= !*set;
            if inside == 0 {
                continue;
            }
            if outside != 0 {
                split.push((outside, know.clone()));
                *set = inside;
            }
            learn(know);
        }
        if open != 0 {
            let mut know = self.all.clone();
            learn(&mut know);
            split.push((open, know));
        }
        self.some.append(&mut split);
        self.some.sort_unstable_by_key(|s| s.0);
    }

    /// The lanes meet.
    pub(super) fn meet(&mut self) {
        for (_, know) in std::mem::take(&mut self.some) {
            self.all.join(&know);
        }
    }

    /// What all lanes know, sets of them do. Sets that know no more than all are none, but for the
    /// elected lane: it may go on to wait where the others do not.
    pub(super) fn tidy(&mut self) {
        let all = &self.all;
        self.some.iter_mut().for_each(|(_, know)| know.join(all));
        self.some
            .retain(|(set, know)| *set == ELECTED || !know.is_within(all));
    }

    pub(super) fn clear(&mut self, dead: &Bits) {
        self.all.clear(dead);
        self.some.iter_mut().for_each(|(_, know)| know.clear(dead));
    }
}
