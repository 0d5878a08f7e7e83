//! The sets of bytes that accesses touch.

use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::rc::Rc;

/// A run of bytes, and the lane that touched it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub(super) struct Run {
    pub(super) lo: u32,
    pub(super) hi: u32,
    pub(super) lane: u8,
}

/// No lane in particular: an engine, or lanes at places that are not known.
pub(super) const ANY_LANE: u8 = 32;
/// The elected lane.
pub(super) const ELECTED_LANE: u8 = 33;

/// Runs, sorted, those of one lane apart from each other; shared by all who hold them.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs {
    shared: Rc<Shared>,
    /// The first byte, and the one after the last.
    lo: u32,
    hi: u32,
}

#[derive(Debug, Default)]
struct Shared {
    list: Vec<Run>,
    /// Bytes of the longest.
    longest: u32,
    /// A number that differs where the runs do.
    number: u64,
}

impl FromIterator<Run> for Runs {
    fn from_iter<T: IntoIterator<Item = Run>>(runs: T) -> Self {
        let mut runs: Vec<Run> = runs.into_iter().collect();
        runs.sort_unstable();
        let mut list: Vec<Run> = Vec::with_capacity(runs.len());
        for r in runs {
            match list.last_mut() {
                Some(last) if last.lane == r.lane && r.lo <= last.hi => last.hi = last.hi.max(r.hi),
                _ => list.push(r),
            }
        }
        Self::sorted(list)
    }
}

impl Runs {
    fn sorted(list: Vec<Run>) -> Self {
        let (lo, mut hi) = (list.first().map_or(0, |r| r.lo), 0);
        let mut shared = Shared::default();
        for r in &list {
            hi = hi.max(r.hi);
            shared.longest = shared.longest.max(r.hi - r.lo);
            for x in [u64::from(r.lo) << 32 | u64::from(r.hi), u64::from(r.lane)] {
                shared.number =
                    (shared.number.rotate_left(25) ^ x).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            }
        }
        shared.list = list;
        let shared = Rc::new(shared);
        Self { shared, lo, hi }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.shared.list.is_empty()
    }

    /// The first byte, and the one after the last.
    pub(super) fn bounds(&self) -> (u32, u32) {
        (self.lo, self.hi)
    }

    /// The first byte.
    pub(super) fn start(&self) -> u32 {
        self.lo
    }

    /// A number that differs where the runs do.
    pub(super) fn number(&self) -> u64 {
        self.shared.number
    }

    /// May they have bytes in common with others?
    fn is_near(&self, other: &Runs) -> bool {
        self.lo < other.hi && other.lo < self.hi
    }

    fn pair(&self, other: &Runs) -> Pair {
        (Rc::as_ptr(&self.shared), Rc::as_ptr(&other.shared))
    }

    /// Both.
    fn and(&self, other: &Runs) -> Runs {
        match Rc::ptr_eq(&self.shared, &other.shared) {
            true => self.clone(),
            false => self
                .shared
                .list
                .iter()
                .chain(&other.shared.list)
                .copied()
                .collect(),
        }
    }

    /// The same bytes, of any lane.
    fn met(&self) -> Runs {
        let any = |r: &Run| Run {
            lane: ANY_LANE,
            ..*r
        };
        self.shared.list.iter().map(any).collect()
    }

    /// Those that may have bytes in common with a run.
    fn around(&self, r: &Run) -> impl Iterator<Item = &Run> {
        let from = r.lo.saturating_sub(self.shared.longest);
        let first = self.shared.list.partition_point(|y| y.lo < from);
        let hi = r.hi;
        self.shared.list[first..]
            .iter()
            .take_while(move |y| y.lo < hi)
    }

    /// The first run that overlaps with one of the others such that `accept` accepts the two.
    pub(super) fn overlap(
        &self,
        other: &Runs,
        mut accept: impl FnMut(&Run, &Run) -> bool,
    ) -> Option<Run> {
        let meets = |x: &&Run| {
            let mut around = other.around(x);
            around.any(|y| x.lo < y.hi && accept(x, y))
        };
        self.shared.list.iter().find(meets).copied()
    }

    /// What is left when others are taken away.
    fn without(&self, taken: &Runs) -> Runs {
        if Rc::ptr_eq(&self.shared, &taken.shared) {
            return Runs::default();
        }
        self.cut(taken, |_, _| true)
    }

    /// What is left when others of the same lanes are taken away.
    fn without_own(&self, taken: &Runs) -> Runs {
        self.cut(taken, |r, t| r.lane == t.lane && r.lane != ANY_LANE)
    }

    fn cut(&self, taken: &Runs, takes: impl Fn(&Run, &Run) -> bool) -> Runs {
        let mut left = Vec::new();
        for r in &self.shared.list {
            let mut lo = r.lo;
            for t in taken.around(r) {
                if t.hi <= lo || !takes(r, t) {
                    continue;
                }
                if t.lo > lo {
                    left.push(Run { lo, hi: t.lo, ..*r });
                }
                lo = lo.max(t.hi);
            }
            if lo < r.hi {
                left.push(Run { lo, ..*r });
            }
        }
        Self::sorted(left)
    }
}

/// Where two lists of runs are.
type Pair = (*const Shared, *const Shared);

/// What came of pairs of runs: warps touch the same bytes round after round.
#[derive(Default)]
pub(super) struct Pairs {
    and: RefCell<FxHashMap<Pair, Runs>>,
    without: RefCell<FxHashMap<Pair, Runs>>,
    without_own: RefCell<FxHashMap<Pair, Runs>>,
    meet: RefCell<FxHashMap<Pair, bool>>,
    met: RefCell<FxHashMap<Pair, Runs>>,
    /// The runs themselves, by number: one list for all that are the same.
    held: RefCell<FxHashMap<u64, Vec<Runs>>>,
}

impl Pairs {
    /// The same runs, shared with all who hold them.
    pub(super) fn hold(&self, runs: &Runs) -> Runs {
        let mut held = self.held.borrow_mut();
        let list = held.entry(runs.number()).or_default();
        let same =
            |r: &&Runs| Rc::ptr_eq(&r.shared, &runs.shared) || r.shared.list == runs.shared.list;
        if let Some(known) = list.iter().find(same) {
            return known.clone();
        }
        list.push(runs.clone());
        runs.clone()
    }

    fn kept<T: Clone>(
        &self,
        known: &RefCell<FxHashMap<Pair, T>>,
        [a, b]: [&Runs; 2],
        find: impl FnOnce(&Runs, &Runs) -> T,
    ) -> T {
        if let Some(known) = known.borrow().get(&a.pair(b)) {
            return known.clone();
        }
        // Runs that are held keep their places.
        let (a, b) = (self.hold(a), self.hold(b));
        let found = find(&a, &b);
        known.borrow_mut().insert(a.pair(&b), found.clone());
        found
    }

    /// Both.
    pub(super) fn and(&self, a: &Runs, b: &Runs) -> Runs {
        self.kept(&self.and, [a, b], |a, b| self.hold(&a.and(b)))
    }

    /// What is left of one when another is taken away.
    pub(super) fn without(&self, a: &Runs, taken: &Runs) -> Runs {
        self.kept(&self.without, [a, taken], |a, b| self.hold(&a.without(b)))
    }

    /// What is left of one when the runs of the same lanes of another are taken away.
    pub(super) fn without_own(&self, a: &Runs, taken: &Runs) -> Runs {
        self.kept(&self.without_own, [a, taken], |a, b| {
            self.hold(&a.without_own(b))
        })
    }

    /// The same bytes, of any lane.
    pub(super) fn met(&self, runs: &Runs) -> Runs {
        self.kept(&self.met, [runs, runs], |runs, _| self.hold(&runs.met()))
    }

    /// Have they bytes in common?
    pub(super) fn meet(&self, a: &Runs, b: &Runs) -> bool {
        let meet = |a: &Runs, b: &Runs| a.overlap(b, |_, _| true).is_some();
        a.is_near(b) && self.kept(&self.meet, [a, b], meet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(lo: u32, hi: u32) -> Run {
        Run {
            lo,
            hi,
            lane: ANY_LANE,
        }
    }

    fn runs<const N: usize>(list: [Run; N]) -> Runs {
        list.into_iter().collect()
    }

    #[test]
    fn runs_are_joined_and_cut() {
        let all = runs([run(8, 16), run(0, 8), run(20, 24)]);
        assert_eq!(all.shared.list, [run(0, 16), run(20, 24)]);
        let left = all.without(&runs([run(4, 6), run(15, 21)]));
        assert_eq!(left.shared.list, [run(0, 4), run(6, 15), run(21, 24)]);
        assert!(all.without(&runs([run(0, 100)])).is_empty());
        assert!(all.without(&all).is_empty());
        assert_ne!(all.number(), left.number());
    }

    #[test]
    fn a_long_run_is_found_behind_short_ones() {
        let long = runs([
            run(0, 100),
            Run {
                lane: 1,
                ..run(4, 8)
            },
            Run {
                lane: 2,
                ..run(40, 44)
            },
        ]);
        assert!(runs([run(90, 92)]).overlap(&long, |_, _| true).is_some());
        assert!(runs([run(90, 92)]).without(&long).is_empty());
        assert!(runs([run(100, 104)]).overlap(&long, |_, _| true).is_none());
    }

    #[test]
    fn an_overlap_is_found_whatever_the_lanes() {
        let a = runs([run(0, 4), run(8, 12)]);
        assert!(a.overlap(&runs([run(4, 8)]), |_, _| true).is_none());
        let b = runs([run(11, 20)]);
        assert!(a.overlap(&b, |_, _| true).is_some());
        assert!(a.overlap(&b, |x, y| x.lane != y.lane).is_none());
        let lanes = runs([
            Run {
                lane: 3,
                ..run(0, 4)
            },
            Run {
                lane: 4,
                ..run(4, 8)
            },
        ]);
        assert_eq!(lanes.met().shared.list, [run(0, 8)]);
    }
}
