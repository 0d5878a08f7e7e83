//! Livelock detection: warps that repeat their states.
//!
//! Without visible changes, the behavior of a warp depends only on its program counter, masks and
//! registers. A warp that returns to an earlier state repeats until another warp or engine makes a
//! visible change. If all ready warps repeat, none will. Brent's cycle detection finds a repeated
//! state: one state is kept, and replaced after twice as many turns each time.

use crate::warp::{Registers, Warp};
use std::collections::HashMap;
use std::hash::Hash;
use warpline_ir::Mask;

/// The number of steps without a visible change before warps are tracked.
const STEPS_BEFORE_TRACKING: u64 = 1 << 20;

/// The complete state of a warp.
#[derive(Debug)]
struct WarpState {
    pc: u32,
    active: Mask,
    saved: Vec<(Mask, Mask)>,
    regs: Registers,
}

impl WarpState {
    fn capture(w: &Warp) -> Self {
        Self {
            pc: w.pc,
            active: w.active,
            saved: w.saved.iter().map(|s| (s.lanes, s.other)).collect(),
            regs: w.regs.clone(),
        }
    }

    fn matches(&self, w: &Warp) -> bool {
        let saved = w.saved.iter().map(|s| (s.lanes, s.other));
        (self.pc, self.active) == (w.pc, w.active)
            && self.saved.iter().copied().eq(saved)
            && self.regs == w.regs
    }
}

/// A tracked warp: the kept state, the turns since then, and the turns until its replacement.
#[derive(Debug)]
struct TrackedWarp {
    state: WarpState,
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
    pub(crate) fn record_change(&mut self, steps: u64) {
        self.changed = steps;
        if !self.tracked.is_empty() {
            self.tracked.clear();
        }
    }

    /// Records a turn of a warp without a visible change; returns whether the warp repeats its states.
    pub(crate) fn record_turn(&mut self, key: K, w: &Warp, steps: u64) -> bool {
        if steps - self.changed < STEPS_BEFORE_TRACKING {
            return false;
        }
        let tracked = self.tracked.entry(key).or_insert_with(|| TrackedWarp {
            state: WarpState::capture(w),
            turns: 0,
            limit: 1,
            repeats: false,
        });
        if tracked.turns > 0 && tracked.state.matches(w) {
            tracked.repeats = true;
        }
        tracked.turns += 1;
        if !tracked.repeats && tracked.turns > tracked.limit {
            tracked.state = WarpState::capture(w);
            (tracked.turns, tracked.limit) = (1, 2 * tracked.limit);
        }
        tracked.repeats
    }

    /// Whether a warp repeats its states.
    pub(crate) fn repeats(&self, key: &K) -> bool {
        self.tracked.get(key).is_some_and(|tracked| tracked.repeats)
    }
}
