//! The last use of an object by each lane of each thread.
//!
//! The end of the object (the exit of a CTA, `mbarrier.inval`) must be ordered after all uses. The
//! clock of a lane only grows, so the last use of each lane suffices.

use crate::clock::Epoch;

/// The last use of an object by some lanes of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastUse {
    pub(crate) epoch: Epoch,
    /// The warp that ran or issued the use.
    pub(crate) warp: u32,
    /// The op.
    pub(crate) site: u32,
}

/// The last uses by thread; each lane of a thread has at most one.
#[derive(Clone, Default, Debug)]
pub(crate) struct LastUses {
    by_thread: Vec<Vec<LastUse>>,
}

impl LastUses {
    /// Records a use.
    pub(crate) fn record(&mut self, new: LastUse) {
        let thread = new.epoch.thread as usize;
        if self.by_thread.len() <= thread {
            self.by_thread.resize_with(thread + 1, Vec::new);
        }
        let lanes = new.epoch.lanes;
        let uses_of_thread = &mut self.by_thread[thread];
        uses_of_thread.retain_mut(|last| {
            last.epoch.lanes &= !lanes;
            last.epoch.lanes != 0
        });
        let same = |l: &&mut LastUse| l.epoch.clock == new.epoch.clock && l.site == new.site;
        match uses_of_thread.iter_mut().find(same) {
            Some(last) => last.epoch.lanes |= lanes,
            None => uses_of_thread.push(new),
        }
    }

    /// Returns the first use that `has_seen` does not include.
    pub(crate) fn unordered(&self, has_seen: impl Fn(&Epoch) -> bool) -> Option<LastUse> {
        let mut all = self.by_thread.iter().flatten();
        all.find(|last| !has_seen(&last.epoch)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last_use(lanes: u32, clock: u32, site: u32) -> LastUse {
        let epoch = Epoch {
            thread: 1,
            lanes,
            clock,
        };
        let warp = 1;
        LastUse { epoch, warp, site }
    }

    #[test]
    fn each_lane_keeps_its_last_use() {
        let mut uses = LastUses::default();
        uses.record(last_use(0b1111, 3, 7));
        uses.record(last_use(0b0001, 5, 8));
        uses.record(last_use(0b0010, 5, 8));
        let unordered = |end: u32| uses.unordered(|m| m.clock < end).map(|l| l.epoch);
        assert_eq!(unordered(3).unwrap().lanes, 0b1100);
        assert_eq!(unordered(4).unwrap().lanes, 0b0011);
        assert_eq!(unordered(6), None);
    }
}
