//! Accesses that later ones may conflict with.

use super::bits::Bits;
use super::runs::Runs;
use std::collections::HashMap;
use warpline_ir::{Loc, Mask};

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
    pub(super) runs: Runs,
    pub(super) epoch: u32,
    /// How many were made before it.
    pub(super) made: u64,
    pub(super) live: bool,
    /// Has it been handed on to all who could get in its way?
    pub(super) settled: bool,
}

/// All records of a state; a number may be used again once nobody knows of it.
#[derive(Clone, Default)]
pub(super) struct Records {
    all: Vec<Record>,
    /// How many were ever made.
    made: u64,
    free: Vec<u32>,
    /// By the CTA whose memory they are in, and tile.
    by_place: HashMap<(u32, u32), Vec<u32>>,
    /// By warp that made them.
    by_warp: Vec<Vec<u32>>,
    /// Lanes' own asynchronous copies.
    copies: Vec<u32>,
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

    fn list<'s>(&'s self, list: Option<&'s Vec<u32>>) -> impl Iterator<Item = (u32, &'s Record)> {
        let list = list.into_iter().flatten();
        list.map(|&i| (i, &self.all[i as usize]))
            .filter(|(_, r)| r.live)
    }

    /// Those in a tile of a CTA, or of no tile.
    pub(super) fn of(&self, cta: u32, tile: u32) -> impl Iterator<Item = (u32, &Record)> {
        self.list(self.by_place.get(&(cta, tile)))
    }

    /// Those that a warp made.
    pub(super) fn by(&self, warp: u32) -> impl Iterator<Item = (u32, &Record)> {
        self.list(self.by_warp.get(warp as usize))
    }

    /// Lanes' own asynchronous copies.
    pub(super) fn copies(&self) -> impl Iterator<Item = (u32, &Record)> {
        self.list(Some(&self.copies))
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
        let (place, warp) = ((r.cta, r.tile), r.warp as usize);
        let (copy, generic) = (r.who == Who::Copy, matches!(r.who, Who::Lanes | Who::Copy));
        let i = self.put(r);
        if copy {
            self.copies.push(i);
        }
        self.by_place.entry(place).or_default().push(i);
        if self.by_warp.len() <= warp {
            self.by_warp.resize(warp + 1, Vec::new());
        }
        self.by_warp[warp].push(i);
        let maker = maker as usize;
        if self.generic.len() <= maker {
            self.generic.resize(maker + 1, Bits::default());
        }
        if generic {
            self.generic[maker].add(i);
        }
        i
    }

    fn put(&mut self, mut r: Record) -> u32 {
        r.made = self.made;
        self.made += 1;
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
        let lists = self.by_place.values_mut().chain(&mut self.by_warp);
        let lists = lists.chain([&mut self.copies]);
        lists.for_each(|list| list.retain(|&i| !dead.has(i)));
        self.generic.iter_mut().for_each(|g| g.clear(&dead));
        dead
    }
}
