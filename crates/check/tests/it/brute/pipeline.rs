//! A pipeline: roles that loop over tiles, and rings of slots between them.
//!
//! The launch decides the number of tiles and the number of steps of each tile.

/// A pipeline in one CTA or in a cluster of two.
#[derive(Clone, Debug)]
pub(crate) struct Pipeline {
    pub(crate) name: String,
    /// Does a cluster of two CTAs run it? Then each CTA multicasts half of every slot to both and
    /// releases slots in both.
    pub(crate) pair: bool,
    /// The number of step counts of each tile.
    pub(crate) counts: usize,
    /// Is each count a parameter, the same for all tiles? The checker still lets it differ between
    /// tiles.
    pub(crate) plain: bool,
    pub(crate) rings: Vec<Ring>,
    pub(crate) roles: Vec<Role>,
}

/// A ring of slots.
#[derive(Clone, Debug)]
pub(crate) struct Ring {
    pub(crate) stages: u8,
    /// The arrival counts of its mbarriers.
    pub(crate) full: u8,
    pub(crate) empty: u8,
    /// The halves of a slot that a commit expects from copies; 0 if threads write the slots.
    pub(crate) expects: u8,
}

/// One warp, or one lane of it.
#[derive(Clone, Debug)]
pub(crate) struct Role {
    pub(crate) name: &'static str,
    pub(crate) lane: bool,
    /// By ring: the initial parity.
    pub(crate) parity: Vec<u8>,
    /// Does the role skip tiles whose first count is zero?
    pub(crate) skips: bool,
    /// The actions for each tile.
    pub(crate) tile: Vec<Part>,
    /// The actions after the last tile.
    pub(crate) last: Vec<Act>,
}

/// A part of the actions for a tile.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    Once(Vec<Act>),
    /// Skipped in the first tile.
    Later(Vec<Act>),
    /// Repeated `counts[count] + more` times; skipped in the first tile if `later`.
    Steps {
        count: usize,
        more: u8,
        later: bool,
        acts: Vec<Act>,
    },
}

/// An action of a role at its position in a ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Act {
    AwaitEmpty(usize),
    AwaitFull(usize),
    /// Issues a copy to the slot; its bytes count at the full barrier.
    Copy(usize),
    Write(usize),
    Read(usize),
    /// Arrives at the full barrier and expects the bytes of the copies.
    Commit(usize),
    /// Releases the slot of `late` steps before.
    Release {
        ring: usize,
        late: u8,
    },
    /// Releases all slots that the role still holds.
    Drain(usize),
    /// Drops the slots that the role still holds, without a release.
    Drop(usize),
    /// Advances to the next slot.
    Advance(usize),
    /// Skips as many slots as a count of the tile.
    Pass {
        ring: usize,
        count: usize,
    },
    /// Returns to the first slot and the initial parity.
    Restart(usize),
}

impl Pipeline {
    /// Returns the number of CTAs.
    pub(crate) fn ctas(&self) -> usize {
        1 + usize::from(self.pair)
    }

    /// Does a ring use one slot per tile?
    pub(crate) fn per_tile(&self) -> bool {
        let mut parts = self.roles.iter().flat_map(|r| &r.tile);
        parts.any(|p| match p {
            Part::Once(acts) | Part::Later(acts) => acts.iter().any(|a| a.waits()),
            Part::Steps { .. } => false,
        })
    }

    /// Returns the number of slots of the longest ring.
    pub(crate) fn depth(&self) -> u8 {
        self.rings.iter().map(|r| r.stages).max().unwrap_or(1)
    }
}

impl Act {
    /// Returns the ring of the action.
    pub(crate) fn ring(self) -> usize {
        match self {
            Act::AwaitEmpty(r)
            | Act::AwaitFull(r)
            | Act::Copy(r)
            | Act::Write(r)
            | Act::Read(r)
            | Act::Commit(r)
            | Act::Drain(r)
            | Act::Drop(r)
            | Act::Advance(r)
            | Act::Restart(r)
            | Act::Pass { ring: r, .. }
            | Act::Release { ring: r, .. } => r,
        }
    }

    fn waits(self) -> bool {
        matches!(self, Act::AwaitEmpty(_) | Act::AwaitFull(_))
    }
}

impl Role {
    /// Returns all lists of actions for a change.
    pub(crate) fn lists(&mut self) -> impl Iterator<Item = &mut Vec<Act>> {
        let parts = self.tile.iter_mut().map(|p| match p {
            Part::Once(acts) | Part::Later(acts) | Part::Steps { acts, .. } => acts,
        });
        parts.chain([&mut self.last])
    }
}
