//! Records of accesses that a later access may conflict with.

use super::bits::Bits;
use super::lanes::LaneSet;
use super::runs::Runs;
use rustc_hash::FxHashMap;
use warpline_ir::Loc;

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
    pub(super) lanes: LaneSet,
    pub(super) loc: Loc,
    pub(super) write: bool,
    pub(super) atomic: bool,
    /// Is it through the async proxy?
    pub(super) bulk: bool,
    pub(super) cta: u32,
    pub(super) tile: u32,
    pub(super) runs: Runs,
    pub(super) epoch: u32,
    /// How many were made before it.
    pub(super) made: u64,
    pub(super) live: bool,
    /// Has it been handed on to all who could get in its way?
    pub(super) settled: bool,
}

/// The records of one tile, sorted by their first bytes.
#[derive(Clone, Default)]
struct Place {
    list: Vec<Placed>,
    /// The most bytes that one of them has lain among.
    longest: u32,
}

/// A record, and bytes among which all of its own are.
#[derive(Clone, Copy)]
struct Placed {
    record: u32,
    lo: u32,
    hi: u32,
}

impl Place {
    fn add(&mut self, record: u32, (lo, hi): (u32, u32)) {
        self.longest = self.longest.max(hi - lo);
        let at = self.list.partition_point(|p| p.lo <= lo);
        self.list.insert(at, Placed { record, lo, hi });
    }

    /// Those that may have bytes in common with others.
    fn near(&self, (lo, hi): (u32, u32)) -> impl Iterator<Item = u32> {
        let from = lo.saturating_sub(self.longest);
        let first = self.list.partition_point(|p| p.lo < from);
        let near = self.list[first..].iter().take_while(move |p| p.lo < hi);
        near.filter(move |p| lo < p.hi).map(|p| p.record)
    }
}

/// The records themselves, by number: a copy of them has room for more.
#[derive(Default)]
struct All(Vec<Record>);

impl Clone for All {
    fn clone(&self) -> Self {
        let mut list = Vec::with_capacity(self.0.len() + ROOM);
        list.extend_from_slice(&self.0);
        Self(list)
    }
}

/// Records that are likely to be made on the way to the next state.
const ROOM: usize = 64;

/// All records of a state; a number may be used again once nobody knows of it.
#[derive(Clone, Default)]
pub(super) struct Records {
    all: All,
    /// How many were ever made.
    made: u64,
    free: Vec<u32>,
    /// By the CTA whose memory they are in, and tile.
    by_place: FxHashMap<(u32, u32), Place>,
    /// By warp that made them: with the CTA and tile they are in.
    by_warp: Vec<Vec<(u32, (u32, u32))>>,
    /// Lanes' own asynchronous copies.
    copies: Vec<u32>,
    /// Generic accesses: all, and by CTA that made them.
    generic: Bits,
    generic_of: Vec<Bits>,
    /// Generic accesses that write.
    written: Bits,
}

impl Records {
    pub(super) fn get(&self, i: u32) -> &Record {
        &self.all.0[i as usize]
    }

    pub(super) fn get_mut(&mut self, i: u32) -> &mut Record {
        &mut self.all.0[i as usize]
    }

    pub(super) fn live(&self) -> impl Iterator<Item = (u32, &Record)> {
        self.all
            .0
            .iter()
            .enumerate()
            .filter(|(_, r)| r.live)
            .map(|(i, r)| (i as u32, r))
    }

    fn alive(&self, i: u32) -> Option<(u32, &Record)> {
        let r = &self.all.0[i as usize];
        r.live.then_some((i, r))
    }

    /// Those in a tile of a CTA that may have bytes in common with an access.
    pub(super) fn near(
        &self,
        cta: u32,
        tile: u32,
        runs: &Runs,
    ) -> impl Iterator<Item = (u32, &Record)> {
        let place = self.by_place.get(&(cta, tile)).into_iter();
        let near = place.flat_map(|p| p.near(runs.bounds()));
        near.filter_map(|i| self.alive(i))
    }

    /// Those that a warp made in a tile of a CTA, or in none.
    pub(super) fn made_in(
        &self,
        cta: u32,
        tile: u32,
        warp: u32,
    ) -> impl Iterator<Item = (u32, &Record)> {
        let list = self.by_warp.get(warp as usize).into_iter().flatten();
        let there = list.filter(move |r| r.1 == (cta, tile));
        there.filter_map(|r| self.alive(r.0))
    }

    /// Those that a warp made.
    pub(super) fn by(&self, warp: u32) -> impl Iterator<Item = (u32, &Record)> {
        let list = self.by_warp.get(warp as usize).into_iter().flatten();
        list.filter_map(|r| self.alive(r.0))
    }

    /// Lanes' own asynchronous copies.
    pub(super) fn copies(&self) -> impl Iterator<Item = (u32, &Record)> {
        self.copies.iter().filter_map(|&i| self.alive(i))
    }

    /// Gives a record more bytes.
    pub(super) fn widen(&mut self, i: u32, runs: Runs) {
        let r = &mut self.all.0[i as usize];
        if let Some(place) = self.by_place.get_mut(&(r.cta, r.tile)) {
            place.list.retain(|p| p.record != i);
            place.add(i, runs.bounds());
        }
        r.runs = runs;
    }

    /// Generic accesses.
    pub(super) fn generic(&self) -> &Bits {
        &self.generic
    }

    /// Generic accesses made by other CTAs.
    pub(super) fn generic_of_others(&self, cta: u32) -> Bits {
        let mut others = self.generic.clone();
        if let Some(own) = self.generic_of.get(cta as usize) {
            others.clear(own);
        }
        others
    }

    /// Generic accesses that write.
    pub(super) fn written(&self) -> &Bits {
        &self.written
    }

    /// Adds a record that a CTA made.
    pub(super) fn add(&mut self, r: Record, maker: u32) -> u32 {
        let (place, warp) = ((r.cta, r.tile), r.warp as usize);
        let bounds = r.runs.bounds();
        let (copy, generic) = (r.who == Who::Copy, matches!(r.who, Who::Lanes | Who::Copy));
        let write = r.write;
        let i = self.put(r);
        if copy {
            self.copies.push(i);
        }
        if !matches!(place, (_, u32::MAX)) {
            self.by_place.entry(place).or_default().add(i, bounds);
        }
        if self.by_warp.len() <= warp {
            self.by_warp.resize(warp + 1, Vec::new());
        }
        self.by_warp[warp].push((i, place));
        let maker = maker as usize;
        if self.generic_of.len() <= maker {
            self.generic_of.resize(maker + 1, Bits::default());
        }
        if generic {
            self.generic.add(i);
            self.generic_of[maker].add(i);
        }
        if generic && write {
            self.written.add(i);
        }
        i
    }

    fn put(&mut self, mut r: Record) -> u32 {
        r.made = self.made;
        self.made += 1;
        match self.free.pop() {
            Some(i) => {
                self.all.0[i as usize] = r;
                i
            }
            None => {
                self.all.0.push(r);
                self.all.0.len() as u32 - 1
            }
        }
    }

    /// The numbers of records that have ended since the last time; they may be used again
    /// once they are cleared from all that is known.
    pub(super) fn collect(&mut self) -> Bits {
        let mut dead = Bits::default();
        let mut free = Bits::default();
        self.free.iter().for_each(|&i| free.add(i));
        for i in 0..self.all.0.len() as u32 {
            let r = &self.all.0[i as usize];
            if !r.live && !free.has(i) {
                dead.add(i);
                self.free.push(i);
            }
        }
        self.free.sort_unstable_by(|a, b| b.cmp(a));
        for place in self.by_place.values_mut() {
            place.list.retain(|p| !dead.has(p.record));
        }
        for list in &mut self.by_warp {
            list.retain(|r| !dead.has(r.0));
        }
        self.copies.retain(|&i| !dead.has(i));
        self.generic.clear(&dead);
        self.generic_of.iter_mut().for_each(|g| g.clear(&dead));
        self.written.clear(&dead);
        dead
    }
}
