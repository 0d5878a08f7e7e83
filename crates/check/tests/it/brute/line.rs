//! An assembly line: roles that go round over tiles, and rings of slots between them.
//!
//! A launch decides how many tiles there are, and how many steps each has.

/// A line, in one CTA or in a pair of them.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) name: String,
    /// Two CTAs run it; each brings half of every slot to both, and gives slots back to both.
    pub(crate) pair: bool,
    /// Counts of steps that every tile has.
    pub(crate) counts: usize,
    /// Are they parameters themselves? The checker lets them differ from tile to tile all the same.
    pub(crate) plain: bool,
    pub(crate) rings: Vec<Ring>,
    pub(crate) roles: Vec<Role>,
}

/// A ring of slots.
#[derive(Clone, Debug)]
pub(crate) struct Ring {
    pub(crate) stages: u8,
    /// Arrivals per phase that its barriers are made for.
    pub(crate) full: u8,
    pub(crate) empty: u8,
    /// Halves of a slot that a commit expects to be copied; 0: the slots are written.
    pub(crate) expects: u8,
}

/// One warp, or one lane of it.
#[derive(Clone, Debug)]
pub(crate) struct Role {
    pub(crate) name: &'static str,
    pub(crate) lane: bool,
    /// By ring: the parity it begins with.
    pub(crate) parity: Vec<u8>,
    /// Does it pass over tiles whose first count is zero?
    pub(crate) skips: bool,
    /// What it does for every tile.
    pub(crate) tile: Vec<Part>,
    /// What it does behind the last.
    pub(crate) last: Vec<Act>,
}

/// A part of a tile.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    Once(Vec<Act>),
    /// For all tiles but the first.
    Later(Vec<Act>),
    /// As often as a count of the tile says, and so often more; perhaps not for the first tile.
    Steps {
        count: usize,
        more: u8,
        later: bool,
        acts: Vec<Act>,
    },
}

/// What a role does at its place in a ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Act {
    AwaitEmpty(usize),
    AwaitFull(usize),
    /// Has the slot filled, by a copy that brings its bytes to the full barrier.
    Copy(usize),
    Write(usize),
    Read(usize),
    /// Arrives at the full barrier, and expects what is copied.
    Commit(usize),
    /// Gives a slot back, that of so many steps before.
    Release {
        ring: usize,
        late: u8,
    },
    /// Gives back all slots that it still holds.
    Drain(usize),
    /// Forgets the slots that it still holds.
    Drop(usize),
    /// Goes on to the next slot.
    Advance(usize),
    /// Passes over as many slots as a count of the tile says.
    Pass {
        ring: usize,
        count: usize,
    },
    /// Starts again at the first slot, as at the beginning.
    Restart(usize),
}

impl Line {
    /// CTAs.
    pub(crate) fn ctas(&self) -> usize {
        1 + usize::from(self.pair)
    }

    /// Is there a ring of which a slot is used for every tile?
    pub(crate) fn per_tile(&self) -> bool {
        let mut parts = self.roles.iter().flat_map(|r| &r.tile);
        parts.any(|p| match p {
            Part::Once(acts) | Part::Later(acts) => acts.iter().any(|a| a.waits()),
            Part::Steps { .. } => false,
        })
    }

    /// Slots of the longest ring.
    pub(crate) fn depth(&self) -> u8 {
        self.rings.iter().map(|r| r.stages).max().unwrap_or(1)
    }
}

impl Act {
    /// The ring it is about.
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
    /// All lists of acts, to be changed.
    pub(crate) fn lists(&mut self) -> impl Iterator<Item = &mut Vec<Act>> {
        let parts = self.tile.iter_mut().map(|p| match p {
            Part::Once(acts) | Part::Later(acts) | Part::Steps { acts, .. } => acts,
        });
        parts.chain([&mut self.last])
    }
}
