//! The last moments at which threads did something to one object, lane by lane.
//!
//! Who ends the object (a CTA that leaves, an mbarrier that is made invalid)
//! must know of all of them. Numbers of a lane only grow, so that knowing of a
//! lane's last moment is knowing of all its moments.

use crate::clock::Moment;

/// One of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Last {
    pub(crate) moment: Moment,
    /// The warp that did it, or had an engine do it.
    pub(crate) warp: u32,
    /// The op.
    pub(crate) site: u32,
}

/// The last moments of each thread; no lane of a thread has two.
#[derive(Clone, Default, Debug)]
pub(crate) struct LastMoments {
    by_thread: Vec<Vec<Last>>,
}

impl LastMoments {
    /// Some lanes of a thread, or an engine, do it again.
    pub(crate) fn note(&mut self, new: Last) {
        let thread = new.moment.thread as usize;
        if self.by_thread.len() <= thread {
            self.by_thread.resize_with(thread + 1, Vec::new);
        }
        let lanes = new.moment.lanes;
        let of_thread = &mut self.by_thread[thread];
        of_thread.retain_mut(|last| {
            last.moment.lanes &= !lanes;
            last.moment.lanes != 0
        });
        let same = |l: &&mut Last| l.moment.clock == new.moment.clock && l.site == new.site;
        match of_thread.iter_mut().find(same) {
            Some(last) => last.moment.lanes |= lanes,
            None => of_thread.push(new),
        }
    }

    /// The first that is not known.
    pub(crate) fn unknown(&self, knows: impl Fn(&Moment) -> bool) -> Option<Last> {
        let mut all = self.by_thread.iter().flatten();
        all.find(|last| !knows(&last.moment)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last(lanes: u32, clock: u32, site: u32) -> Last {
        let moment = Moment {
            thread: 1,
            lanes,
            clock,
        };
        let warp = 1;
        Last { moment, warp, site }
    }

    #[test]
    fn each_lane_keeps_its_last_moment() {
        let mut m = LastMoments::default();
        m.note(last(0b1111, 3, 7));
        m.note(last(0b0001, 5, 8));
        m.note(last(0b0010, 5, 8));
        let unknown = |past: u32| m.unknown(|m| m.clock < past).map(|l| l.moment);
        assert_eq!(unknown(3).unwrap().lanes, 0b1100);
        assert_eq!(unknown(4).unwrap().lanes, 0b0011);
        assert_eq!(unknown(6), None);
    }
}
