//! Accesses that later ones may conflict with.

use super::bits::Bits;
use warpline_ir::{Loc, Mask};

/// A run of bytes, and the lane that touched it (32: any).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub(super) struct Run {
    pub(super) lo: u32,
    pub(super) hi: u32,
    pub(super) lane: u8,
}

/// Any lane.
pub(super) const ANY_LANE: u8 = 32;

/// Who touches.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Who {
    /// Lanes, themselves.
    Lanes,
    /// The copy engine, counted by an mbarrier in a phase.
    Load { bar: u32, phase: u32 },
    /// The copy engine, in a bulk group.
    Store,
    /// The tensor cores.
    Product,
    /// Lanes' own asynchronous copies.
    Copy,
    /// A wait that saw a phase complete.
    Passed,
    /// The init of an mbarrier.
    Init,
    /// Something that reaches into a CTA.
    Reach,
}

/// One access.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) who: Who,
    pub(super) warp: u32,
    pub(super) lanes: Mask,
    pub(super) loc: Loc,
    pub(super) write: bool,
    pub(super) atomic: bool,
    /// Is it through the async proxy?
    pub(super) bulk: bool,
    pub(super) cta: u32,
    pub(super) tile: u32,
    /// Sorted, not overlapping if of one lane.
    pub(super) runs: Vec<Run>,
    pub(super) epoch: u32,
    pub(super) live: bool,
    /// Has it been handed on to all who could get in its way?
    pub(super) settled: bool,
}

/// All records of a state; a number may be used again once nobody knows of it.
#[derive(Clone, Default)]
pub(super) struct Records {
    all: Vec<Record>,
    free: Vec<u32>,
    /// By CTA whose memory they are in.
    by_cta: Vec<Vec<u32>>,
    /// By CTA that made them: generic accesses.
    generic: Vec<Bits>,
}

impl Records {
    pub(super) fn get(&self, i: u32) -> &Record {
        &self.all[i as usize]
    }

    pub(super) fn get_mut(&mut self, i: u32) -> &mut Record {
        &mut self.all[i as usize]
    }

    pub(super) fn live(&self) -> impl Iterator<Item = (u32, &Record)> {
        self.all
            .iter()
            .enumerate()
            .filter(|(_, r)| r.live)
            .map(|(i, r)| (i as u32, r))
    }

    /// Those in the memory of a CTA.
    pub(super) fn of(&self, cta: u32) -> impl Iterator<Item = (u32, &Record)> {
        let list = self.by_cta.get(cta as usize);
        let list = list
            .into_iter()
            .flatten()
            .map(|&i| (i, &self.all[i as usize]));
        list.filter(|(_, r)| r.live)
    }

    /// Generic accesses made by a CTA, or by all others.
    pub(super) fn generic(&self, keep: impl Fn(usize) -> bool) -> Bits {
        let mut bits = Bits::default();
        for (_, made) in self.generic.iter().enumerate().filter(|(c, _)| keep(*c)) {
            bits.join(made);
        }
        bits
    }

    /// Adds a record that a CTA made.
    pub(super) fn add(&mut self, r: Record, maker: u32) -> u32 {
        let (cta, generic) = (r.cta as usize, matches!(r.who, Who::Lanes | Who::Copy));
        let i = self.put(r);
        let most = cta.max(maker as usize) + 1;
        if self.by_cta.len() < most {
            self.by_cta.resize(most, Vec::new());
            self.generic.resize(most, Bits::default());
        }
        self.by_cta[cta].push(i);
        if generic {
            self.generic[maker as usize].add(i);
        }
        i
    }

    fn put(&mut self, r: Record) -> u32 {
        match self.free.pop() {
            Some(i) => {
                self.all[i as usize] = r;
                i
            }
            None => {
                self.all.push(r);
                self.all.len() as u32 - 1
            }
        }
    }

    /// The numbers of records that have ended since the last time; they may be used again
    /// once they are cleared from all that is known.
    pub(super) fn collect(&mut self) -> Bits {
        let mut dead = Bits::default();
        let mut free = Bits::default();
        self.free.iter().for_each(|&i| free.add(i));
        for i in 0..self.all.len() as u32 {
            let r = &self.all[i as usize];
            if !r.live && !free.has(i) {
                dead.add(i);
                self.free.push(i);
            }
        }
        self.free.sort_unstable_by(|a, b| b.cmp(a));
        for list in &mut self.by_cta {
            list.retain(|&i| !dead.has(i));
        }
        self.generic.iter_mut().for_each(|g| g.clear(&dead));
        dead
    }
}

/// The first pair of runs that overlap and that `differ` accepts.
pub(super) fn overlap<'a>(
    a: &'a [Run],
    b: &'a [Run],
    mut accept: impl FnMut(&Run, &Run) -> bool,
) -> Option<(&'a Run, &'a Run)> {
    for x in a {
        // Sorted by `lo`; runs of different lanes may overlap, so `hi` is not.
        for y in b {
            if y.lo >= x.hi {
                break;
            }
            if x.lo < y.hi && accept(x, y) {
                return Some((x, y));
            }
        }
    }
    None
}

/// Sorts runs and joins neighbours of the same lane.
pub(super) fn tidy(runs: &mut Vec<Run>) {
    runs.sort_unstable();
    let mut out: Vec<Run> = Vec::with_capacity(runs.len());
    for r in runs.drain(..) {
        match out.last_mut() {
            Some(last) if last.lane == r.lane && r.lo <= last.hi => last.hi = last.hi.max(r.hi),
            _ => out.push(r),
        }
    }
    *runs = out;
}

/// What is left of runs when others are taken away.
pub(super) fn without(runs: &[Run], taken: &[Run]) -> Vec<Run> {
    let mut out = Vec::new();
    for r in runs {
        let mut lo = r.lo;
        for t in taken {
            if t.lo >= r.hi {
                break;
            }
            if t.hi <= lo {
                continue;
            }
            if t.lo > lo {
                out.push(Run { lo, hi: t.lo, ..*r });
            }
            lo = lo.max(t.hi);
        }
        if lo < r.hi {
            out.push(Run { lo, ..*r });
        }
    }
    out
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

    #[test]
    fn runs_are_joined_and_cut() {
        let mut runs = vec![run(8, 16), run(0, 8), run(20, 24)];
        tidy(&mut runs);
        assert_eq!(runs, [run(0, 16), run(20, 24)]);
        let left = without(&runs, &[run(4, 6), run(15, 21)]);
        assert_eq!(left, [run(0, 4), run(6, 15), run(21, 24)]);
        assert!(without(&runs, &[run(0, 100)]).is_empty());
    }

    #[test]
    fn an_overlap_is_found_whatever_the_lanes() {
        let a = [run(0, 4), run(8, 12)];
        assert!(overlap(&a, &[run(4, 8)], |_, _| true).is_none());
        assert!(overlap(&a, &[run(11, 20)], |_, _| true).is_some());
        assert!(overlap(&a, &[run(11, 20)], |x, y| x.lane != y.lane).is_none());
    }
}
