//! Sets of lanes of a warp, with an extra bit for the lane that `elect` picks.
//!
//! `elect` always picks the same lane of a warp, but the program cannot tell which one. The set of
//! all lanes contains the elected lane; a set of some numbered lanes does not, because the elected
//! lane may be another one. Therefore facts about the elected lane never become facts about a
//! numbered lane, nor the reverse.

use super::state::Frame;
use super::world::World;
use warpline_ir::{Machine, Mask};

/// A set of lanes.
pub(super) type LaneSet = u64;

/// The elected lane.
pub(super) const ELECTED: LaneSet = 1 << 32;
/// All lanes by number.
const NUMBERED: LaneSet = ELECTED - 1;
/// All lanes.
pub(super) const ALL: LaneSet = NUMBERED | ELECTED;

/// Lanes by number.
pub(super) fn numbered(mask: Mask) -> LaneSet {
    match mask {
        Mask::MAX => ALL,
        mask => LaneSet::from(mask),
    }
}

/// Lanes of a set that are in none of others: if all numbered lanes are, so is the elected one.
pub(super) fn rest(set: LaneSet, of: LaneSet) -> LaneSet {
    match of & NUMBERED == NUMBERED {
        true => 0,
        false => set & !of,
    }
}

impl World<'_, '_> {
    /// Does one elected lane run, whose number is not known?
    pub(super) fn is_elected(&self) -> bool {
        let frames = &self.st.warps[self.cur].frames;
        frames.iter().any(|f| matches!(f, Frame::Elect { .. }))
    }

    /// The lanes that execute now.
    pub(super) fn lanes(&self) -> LaneSet {
        match self.is_elected() {
            true => ELECTED,
            false => numbered(self.active()),
        }
    }

    /// The set of one executing lane.
    pub(super) fn lane(&self, lane: usize) -> LaneSet {
        match self.is_elected() {
            true => ELECTED,
            false => 1 << lane,
        }
    }
}
