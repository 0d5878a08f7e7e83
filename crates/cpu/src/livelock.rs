//! Livelock detection: warps that repeat their states.
//!
//! Without visible changes, the behavior of a warp depends only on its program counter, masks and
//! registers. A warp that returns to an earlier state repeats until something else changes; if all
//! ready warps repeat, nothing will change. States are compared with Brent's cycle detection: one
//! state is kept, and replaced after twice as many turns each time.

use crate::warp::{Registers, Warp};
use std::collections::HashMap;
use std::hash::Hash;
use warpline_ir::Mask;

/// The number of steps without a change before warps are tracked.
const QUIET_STEPS: u64 = 1 << 20;

/// The complete state of a warp.
#[derive(Debug)]
struct WarpState {
    pc: u32,
    active: Mask,
    saved: Vec<(Mask, Mask)>,
    regs: Registers,
}

impl WarpState {
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

/// A warp that is tracked.
#[derive(Debug)]
struct TrackedWarp {
    kept: WarpState,
    turns: u64,
    limit: u64,
    repeats: bool,
}

/// The warps that run without visible changes.
#[derive(Debug)]
pub(crate) struct LivelockDetector<K> {
    /// The step of the last change.
    changed: u64,
    tracked: HashMap<K, TrackedWarp>,
}

impl<K: Hash + Eq> LivelockDetector<K> {
    /// Creates a detector without tracked warps.
    pub(crate) fn new() -> Self {
        Self {
            changed: 0,
            tracked: HashMap::new(),
        }
    }

    /// Records a change that a warp may observe.
    pub(crate) fn change(&mut self, steps: u64) {
        self.changed = steps;
        if !self.tracked.is_empty() {
            self.tracked.clear();
        }
    }

    /// Records a turn of a warp without a change; returns whether the warp repeats its states.
    pub(crate) fn turn(&mut self, key: K, w: &Warp, steps: u64) -> bool {
        if steps - self.changed < QUIET_STEPS {
            return false;
        }
        let s = self.tracked.entry(key).or_insert_with(|| TrackedWarp {
            kept: WarpState::of(w),
            turns: 0,
            limit: 1,
            repeats: false,
        });
        if s.turns > 0 && s.kept.is_of(w) {
            s.repeats = true;
        }
        s.turns += 1;
        if !s.repeats && s.turns > s.limit {
            s.kept = WarpState::of(w);
            (s.turns, s.limit) = (1, 2 * s.limit);
        }
        s.repeats
    }

    /// Whether a warp repeats its states.
    pub(crate) fn repeats(&self, key: &K) -> bool {
        self.tracked.get(key).is_some_and(|s| s.repeats)
    }
}
