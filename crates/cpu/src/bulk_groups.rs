//! Bulk groups: `cp.async.bulk.commit_group` and `wait_group`.

/// The bulk groups of one warp.
#[derive(Debug, Default)]
pub(crate) struct BulkGroups {
    /// Groups that no wait has retired, oldest first.
    list: Vec<Group>,
    count: u64,
    /// By lane: the last copy of the retired groups, plus 1.
    retired: [u32; 32],
}

#[derive(Debug)]
struct Group {
    number: u64,
    lane: u32,
    /// Whether it is committed.
    closed: bool,
    /// The number of copies whose source is not read.
    unread: u32,
    /// The number of incomplete copies.
    undone: u32,
    /// The number of its last copy in the warp, plus 1.
    past: u32,
}

impl BulkGroups {
    /// Adds a copy to the open group of a lane; returns the group's number.
    pub(crate) fn add(&mut self, lane: u32, copy: u32) -> u64 {
        let g = self.open(lane);
        g.unread += 1;
        g.undone += 1;
        g.past = copy + 1;
        g.number
    }

    /// Commits the open group of a lane, which may be empty.
    pub(crate) fn commit(&mut self, lane: u32) {
        self.open(lane).closed = true;
    }

    /// Returns the open group of a lane.
    fn open(&mut self, lane: u32) -> &mut Group {
        let is_open = |g: &Group| g.lane == lane && !g.closed;
        let at = self.list.iter().position(is_open).unwrap_or_else(|| {
            self.count += 1;
            self.list.push(Group {
                number: self.count,
                lane,
                closed: false,
                unread: 0,
                undone: 0,
                past: 0,
            });
            self.list.len() - 1
        });
        &mut self.list[at]
    }

    /// Returns the groups that a wait covers: all committed groups of the lane except the `pending`
    /// youngest.
    fn covered(&self, lane: u32, pending: u32) -> impl Iterator<Item = &Group> {
        let of_lane = move |g: &&Group| g.lane == lane && g.closed;
        let n = self.list.iter().filter(of_lane).count();
        let take = n.saturating_sub(pending as usize);
        self.list.iter().filter(of_lane).take(take)
    }

    /// Whether a wait passes.
    pub(crate) fn passed(&self, lane: u32, pending: u32, read: bool) -> bool {
        self.covered(lane, pending)
            .all(|g| if read { g.unread == 0 } else { g.undone == 0 })
    }

    /// Returns one more than the number of the last copy that a wait covers.
    pub(crate) fn past(&self, lane: u32, pending: u32) -> u32 {
        self.covered(lane, pending)
            .map(|g| g.past)
            .max()
            .unwrap_or(0)
            .max(self.retired[lane as usize])
    }

    /// Whether a wait needs a group to progress.
    pub(crate) fn waits_for(&self, group: u64, lane: u32, pending: u32, read: bool) -> bool {
        self.covered(lane, pending)
            .any(|g| g.number == group && if read { g.unread > 0 } else { g.undone > 0 })
    }

    /// Retires the completed groups that a wait covered.
    pub(crate) fn retire(&mut self, lane: u32, pending: u32) {
        let last = self.covered(lane, pending).map(|g| g.number).max();
        let past = &mut self.retired[lane as usize];
        self.list.retain(|g| {
            let keep = g.lane != lane || Some(g.number) > last || g.undone > 0;
            if !keep {
                *past = g.past.max(*past);
            }
            keep
        });
    }

    /// Records that a copy of a group read its source or completed.
    pub(crate) fn advance(&mut self, number: u64, read: bool, done: bool) {
        if let Some(g) = self.list.iter_mut().find(|g| g.number == number) {
            g.unread -= u32::from(read);
            g.undone -= u32::from(done);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_covers_all_but_the_youngest_groups_of_its_lane() {
        let mut g = BulkGroups::default();
        let first = g.add(0, 0);
        g.commit(0);
        let second = g.add(0, 1);
        g.commit(0);
        g.add(3, 2);
        g.commit(3);
        assert!(!g.passed(0, 1, true) && g.passed(0, 2, false));
        assert!(g.waits_for(first, 0, 1, false) && !g.waits_for(second, 0, 1, false));
        g.advance(first, true, false);
        assert!(g.passed(0, 1, true) && !g.passed(0, 1, false));
        g.advance(first, false, true);
        assert!(g.passed(0, 1, false) && !g.passed(0, 0, true));
        assert_eq!((g.past(0, 1), g.past(0, 0), g.past(3, 0)), (1, 2, 3));
        g.retire(0, 1);
        assert_eq!(g.list.len(), 2);
        assert!(!g.passed(3, 0, true));
    }

    #[test]
    fn an_empty_group_is_complete() {
        let mut g = BulkGroups::default();
        g.commit(0);
        assert!(g.passed(0, 0, false));
    }
}
