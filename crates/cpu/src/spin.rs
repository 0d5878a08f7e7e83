//! Warps that repeat themselves: a loop that nothing can end any more.
//!
//! As long as nothing changes that another warp could see, what a warp does
//! follows from where it is and what its registers hold. A warp that comes
//! back to a state it had repeats itself until something else changes; if all
//! that can run do, nothing ever will. States are compared as Brent does: with
//! one that is kept, and replaced after twice as many turns each time.

use crate::warp::{Registers, Warp};
use std::collections::HashMap;
use std::hash::Hash;
use warpline_ir::Mask;

/// Steps without a change after which warps are watched.
const QUIET: u64 = 1 << 20;

/// Where a warp is, and what its registers hold.
#[derive(Debug)]
struct State {
    pc: u32,
    active: Mask,
    saved: Vec<(Mask, Mask)>,
    regs: Registers,
}

impl State {
    fn of(w: &Warp) -> Self {
        Self {
            pc: w.pc,
            active: w.active,
            saved: w.saved.iter().map(|s| (s.lanes, s.other)).collect(),
            regs: w.regs.clone(),
        }
    }

    fn is_of(&self, w: &Warp) -> bool {
        let saved = w.saved.iter().map(|s| (s.lanes, s.other));
        (self.pc, self.active) == (w.pc, w.active)
            && self.saved.iter().copied().eq(saved)
            && self.regs == w.regs
    }
}

#[derive(Debug)]
struct Watched {
    kept: State,
    turns: u64,
    most: u64,
    repeats: bool,
}

/// The warps that run although nothing changes.
#[derive(Debug)]
pub(crate) struct Spins<K> {
    /// Steps until the last change.
    changed: u64,
    watched: HashMap<K, Watched>,
}

impl<K: Hash + Eq> Spins<K> {
    /// Nobody is watched.
    pub(crate) fn new() -> Self {
        Self {
            changed: 0,
            watched: HashMap::new(),
        }
    }

    /// Something has changed that a warp may see.
    pub(crate) fn change(&mut self, steps: u64) {
        self.changed = steps;
        if !self.watched.is_empty() {
            self.watched.clear();
        }
    }

    /// A turn of a warp ends in which nothing changed; says whether the warp is known to repeat itself.
    pub(crate) fn turn(&mut self, key: K, w: &Warp, steps: u64) -> bool {
        if steps - self.changed < QUIET {
            return false;
        }
        let s = self.watched.entry(key).or_insert_with(|| Watched {
            kept: State::of(w),
            turns: 0,
            most: 1,
            repeats: false,
        });
        if s.turns > 0 && s.kept.is_of(w) {
            s.repeats = true;
        }
        s.turns += 1;
        if !s.repeats && s.turns > s.most {
            s.kept = State::of(w);
            (s.turns, s.most) = (1, 2 * s.most);
        }
        s.repeats
    }

    /// Does a warp repeat itself?
    pub(crate) fn repeats(&self, key: &K) -> bool {
        self.watched.get(key).is_some_and(|s| s.repeats)
    }
}
