//! Bytes that an access touches.

use std::cell::OnceCell;
use std::rc::Rc;

/// A run of bytes, and the lane that touched it (32: any).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub(super) struct Run {
    pub(super) lo: u32,
    pub(super) hi: u32,
    pub(super) lane: u8,
}

/// Any lane.
pub(super) const ANY_LANE: u8 = 32;

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
    /// The same bytes, of any lane.
    met: OnceCell<Runs>,
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

    /// The first byte.
    pub(super) fn start(&self) -> u32 {
        self.lo
    }

    /// A number that differs where the runs do.
    pub(super) fn number(&self) -> u64 {
        self.shared.number
    }

    /// May they have bytes in common with others?
    pub(super) fn is_near(&self, other: &Runs) -> bool {
        self.lo < other.hi && other.lo < self.hi
    }

    /// Both.
    pub(super) fn and(&self, other: &Runs) -> Runs {
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
    pub(super) fn met(&self) -> Runs {
        let met = self.shared.met.get_or_init(|| {
            let any = |r: &Run| Run {
                lane: ANY_LANE,
                ..*r
            };
            self.shared.list.iter().map(any).collect()
        });
        met.clone()
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

    /// The first pair of runs that overlap and that `accept` accepts.
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
    pub(super) fn without(&self, taken: &Runs) -> Runs {
        if Rc::ptr_eq(&self.shared, &taken.shared) {
            return Runs::default();
        }
        let mut left = Vec::new();
        for r in &self.shared.list {
            let mut lo = r.lo;
            for t in taken.around(r) {
                if t.hi <= lo {
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
