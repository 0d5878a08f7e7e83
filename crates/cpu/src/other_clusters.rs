//! Clocks of other clusters.

use crate::clock::{Clock, Epoch};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The clocks of other clusters, by cluster index; usually empty.
#[derive(Clone, Default, Debug)]
pub(crate) struct OtherClusters(Option<Arc<BTreeMap<u64, Arc<Clock>>>>);

impl OtherClusters {
    /// Joins all clocks of `other`.
    pub(crate) fn join(&mut self, other: &OtherClusters) {
        let Some(theirs) = &other.0 else { return };
        match &self.0 {
            None => self.0 = other.0.clone(),
            Some(own) if Arc::ptr_eq(own, theirs) => {}
            Some(_) => {
                for (&cluster, clock) in theirs.iter() {
                    self.join_cluster(cluster, clock);
                }
            }
        }
    }

    /// Joins the clock of one cluster.
    pub(crate) fn join_cluster(&mut self, cluster: u64, clock: &Arc<Clock>) {
        let all = Arc::make_mut(self.0.get_or_insert_default());
        let known = all.entry(cluster).or_insert_with(|| clock.clone());
        if !Arc::ptr_eq(known, clock) {
            Arc::make_mut(known).join(clock);
        }
    }

    /// Returns the clock of a cluster.
    pub(crate) fn clock_of(&self, cluster: u64) -> Option<&Clock> {
        Some(self.0.as_ref()?.get(&cluster)?)
    }

    /// Whether an epoch of a cluster is included.
    pub(crate) fn has_seen(&self, cluster: u64, m: &Epoch) -> bool {
        self.clock_of(cluster).is_some_and(|c| c.has_seen(m))
    }
}
