//! Bulk groups: `cp.async.bulk.commit_group` and `wait_group`.

/// The bulk groups of one warp.
#[derive(Debug, Default)]
pub(crate) struct BulkGroups {
    /// Groups that no wait has retired, oldest first.
    groups: Vec<Group>,
    /// The number of groups opened so far.
    opened: u64,
    /// By lane: one more than the number of the last copy in its retired groups.
    retired: [u32; 32],
}

#[derive(Debug)]
struct Group {
    number: u64,
    lane: u32,
    /// Whether the lane committed the group.
    committed: bool,
    /// The number of copies whose source is not read yet.
    unread: u32,
    /// The number of incomplete copies.
    incomplete: u32,
    /// One more than the number of its last copy, counted per warp.
    end: u32,
}

impl BulkGroups {
    /// Adds a copy to the open group of a lane; returns the group's number.
    pub(crate) fn add_copy(&mut self, lane: u32, copy: u32) -> u64 {
        let g = self.open_group(lane);
        g.unread += 1;
        g.incomplete += 1;
        g.end = copy + 1;
        g.number
    }

    /// Commits the open group of a lane, which may be empty.
    pub(crate) fn commit(&mut self, lane: u32) {
        self.open_group(lane).committed = true;
    }

    /// Returns the open group of a lane.
    fn open_group(&mut self, lane: u32) -> &mut Group {
        let is_open = |g: &Group| g.lane == lane && !g.committed;
        let index = self.groups.iter().position(is_open).unwrap_or_else(|| {
            self.opened += 1;
            self.groups.push(Group {
                number: self.opened,
                lane,
                committed: false,
                unread: 0,
                incomplete: 0,
                end: 0,
            });
            self.groups.len() - 1
        });
        &mut self.groups[index]
    }

    /// Returns the groups that a wait covers: all committed groups of the lane except the `pending`
    /// youngest.
    fn covered(&self, lane: u32, pending: u32) -> impl Iterator<Item = &Group> {
        let is_committed = move |g: &&Group| g.lane == lane && g.committed;
        let n = self.groups.iter().filter(is_committed).count();
        let covered = n.saturating_sub(pending as usize);
        self.groups.iter().filter(is_committed).take(covered)
    }

    /// Whether a wait of a lane passes.
    pub(crate) fn wait_passes(&self, lane: u32, pending: u32, read: bool) -> bool {
        self.covered(lane, pending).all(|g| {
            if read {
                g.unread == 0
            } else {
                g.incomplete == 0
            }
        })
    }

    /// Returns one more than the number of the last copy that a wait covers.
    pub(crate) fn end(&self, lane: u32, pending: u32) -> u32 {
        self.covered(lane, pending)
            .map(|g| g.end)
            .max()
            .unwrap_or(0)
            .max(self.retired[lane as usize])
    }

    /// Whether a wait cannot pass before a group makes progress.
    pub(crate) fn wait_needs(&self, group: u64, lane: u32, pending: u32, read: bool) -> bool {
        self.covered(lane, pending)
            .any(|g| g.number == group && if read { g.unread > 0 } else { g.incomplete > 0 })
    }

    /// Retires the completed groups that a wait covered.
    pub(crate) fn retire(&mut self, lane: u32, pending: u32) {
        let last = self.covered(lane, pending).map(|g| g.number).max();
        let end = &mut self.retired[lane as usize];
        self.groups.retain(|g| {
            let keep = g.lane != lane || Some(g.number) > last || g.incomplete > 0;
            if !keep {
                *end = g.end.max(*end);
            }
            keep
        });
    }

    /// Records that a copy of a group read its source or completed.
    pub(crate) fn record_progress(&mut self, number: u64, read: bool, done: bool) {
        if let Some(g) = self.groups.iter_mut().find(|g| g.number == number) {
            g.unread -= u32::from(read);
            g.incomplete -= u32::from(done);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_covers_all_but_the_youngest_groups_of_its_lane() {
        let mut g = BulkGroups::default();
        let first = g.add_copy(0, 0);
        g.commit(0);
        let second = g.add_copy(0, 1);
        g.commit(0);
        g.add_copy(3, 2);
        g.commit(3);
        assert!(!g.wait_passes(0, 1, true) && g.wait_passes(0, 2, false));
        assert!(g.wait_needs(first, 0, 1, false) && !g.wait_needs(second, 0, 1, false));
        g.record_progress(first, true, false);
        assert!(g.wait_passes(0, 1, true) && !g.wait_passes(0, 1, false));
        g.record_progress(first, false, true);
        assert!(g.wait_passes(0, 1, false) && !g.wait_passes(0, 0, true));
        assert_eq!((g.end(0, 1), g.end(0, 0), g.end(3, 0)), (1, 2, 3));
        g.retire(0, 1);
        assert_eq!(g.groups.len(), 2);
        assert!(!g.wait_passes(3, 0, true));
    }

    #[test]
    fn an_empty_group_is_complete() {
        let mut g = BulkGroups::default();
        g.commit(0);
        assert!(g.wait_passes(0, 0, false));
    }
}
