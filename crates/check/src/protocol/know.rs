//! What a warp, or a barrier, knows has happened.

use super::bits::Bits;
use warpline_ir::Mask;

/// Events that are known, by record, and phases, by barrier.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(super) struct Know {
    /// Records of accesses.
    pub(super) seen: Bits,
    /// Those that a proxy fence followed.
    pub(super) fenced: Bits,
    /// Those known of by an order too weak to see their data.
    pub(super) weak: Bits,
    /// By barrier: how many phases are known to be complete.
    pub(super) phases: Vec<u32>,
}

impl Know {
    pub(super) fn new(barriers: usize) -> Self {
        Self {
            phases: vec![0; barriers],
            ..Self::default()
        }
    }

    pub(super) fn join(&mut self, other: &Know) {
        self.seen.join(&other.seen);
        self.fenced.join(&other.fenced);
        self.weak.join(&other.weak);
        self.join_phases(other);
    }

    /// As [`join`](Self::join), where the order does not carry the data of some records.
    pub(super) fn join_weakly(&mut self, other: &Know, without: &Bits) {
        self.seen.join_without(&other.seen, without);
        self.fenced.join_without(&other.fenced, without);
        self.weak.join(&other.weak);
        self.weak.join_common(&other.seen, without);
        self.join_phases(other);
    }

    fn join_phases(&mut self, other: &Know) {
        for (a, b) in self.phases.iter_mut().zip(&other.phases) {
            *a = (*a).max(*b);
        }
    }

    pub(super) fn clear(&mut self, dead: &Bits) {
        self.seen.clear(dead);
        self.fenced.clear(dead);
        self.weak.clear(dead);
    }

    /// Forgets a record.
    pub(super) fn forget(&mut self, record: u32) {
        self.seen.remove(record);
        self.fenced.remove(record);
        self.weak.remove(record);
    }
}

/// What the lanes of a warp know.
#[derive(Clone, Debug)]
pub(super) struct WarpKnow {
    /// Every lane.
    pub(super) all: Know,
    /// Some lanes, until the warp meets.
    pub(super) some: Option<(Mask, Box<Know>)>,
}

impl WarpKnow {
    pub(super) fn new(barriers: usize) -> Self {
        Self {
            all: Know::new(barriers),
            some: None,
        }
    }

    /// What lanes of this mask know beyond all.
    fn more(&self, lanes: Mask) -> Option<&Know> {
        let (mask, know) = self.some.as_ref()?;
        (lanes & !mask == 0).then_some(know)
    }

    pub(super) fn seen(&self, lanes: Mask, record: u32) -> bool {
        self.all.seen.has(record) || self.more(lanes).is_some_and(|k| k.seen.has(record))
    }

    pub(super) fn fenced(&self, lanes: Mask, record: u32) -> bool {
        self.all.fenced.has(record) || self.more(lanes).is_some_and(|k| k.fenced.has(record))
    }

    pub(super) fn weak(&self, lanes: Mask, record: u32) -> bool {
        self.all.weak.has(record) || self.more(lanes).is_some_and(|k| k.weak.has(record))
    }

    /// Phases of a barrier that some lanes know to be complete.
    pub(super) fn phases(&self, lanes: Mask, bar: usize) -> u32 {
        self.more(lanes)
            .map_or(0, |k| k.phases[bar])
            .max(self.all.phases[bar])
    }

    /// What some lanes can hand on.
    pub(super) fn told(&self, lanes: Mask) -> Know {
        let mut told = self.all.clone();
        if let Some((mask, know)) = &self.some
            && mask & lanes != 0
        {
            told.join(know);
        }
        told
    }

    /// Where what some lanes learn is noted.
    pub(super) fn of(&mut self, lanes: Mask) -> &mut Know {
        if lanes == Mask::MAX {
            return &mut self.all;
        }
        let barriers = self.all.phases.len();
        let (mask, know) = self
            .some
            .get_or_insert_with(|| (0, Box::new(Know::new(barriers))));
        *mask |= lanes;
        know
    }

    /// The lanes meet.
    pub(super) fn meet(&mut self) {
        if let Some((_, know)) = self.some.take() {
            self.all.join(&know);
        }
    }

    /// Forgets a record.
    pub(super) fn forget(&mut self, record: u32) {
        self.all.forget(record);
        if let Some((_, know)) = &mut self.some {
            know.forget(record);
        }
    }

    pub(super) fn clear(&mut self, dead: &Bits) {
        self.all.clear(dead);
        if let Some((_, know)) = &mut self.some {
            know.clear(dead);
        }
    }
}
