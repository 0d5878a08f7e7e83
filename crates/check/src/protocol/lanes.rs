//! Sets of lanes of a warp, among them the lane that `elect` picks.
//!
//! `elect` picks one lane of the warp, always the same one, but nobody knows
//! which. So a set has one bit more than there are lanes: it stands for the
//! elected lane. All lanes together have the elected one among them; a set of
//! some numbered lanes does not, as it need not be one of them. What the
//! elected lane did or knows is thus never taken for what a numbered lane did
//! or knows, nor the other way around.

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
