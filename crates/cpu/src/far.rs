//! What is known of the threads of other clusters.

use crate::clock::{Clock, Moment};
use std::collections::BTreeMap;
use std::sync::Arc;

/// By cluster of the grid: what is known of its threads. Most know of none.
#[derive(Clone, Default, Debug)]
pub(crate) struct Far(Option<Arc<BTreeMap<u64, Arc<Clock>>>>);

impl Far {
    /// Adds what another knows.
    pub(crate) fn join(&mut self, other: &Far) {
        let Some(theirs) = &other.0 else { return };
        match &self.0 {
            None => self.0 = other.0.clone(),
            Some(own) if Arc::ptr_eq(own, theirs) => {}
            Some(_) => {
                for (&cluster, clock) in theirs.iter() {
                    self.learn(cluster, clock);
                }
            }
        }
    }

    /// Adds what is known of the threads of a cluster.
    pub(crate) fn learn(&mut self, cluster: u64, clock: &Arc<Clock>) {
        let all = Arc::make_mut(self.0.get_or_insert_default());
        let known = all.entry(cluster).or_insert_with(|| clock.clone());
        if !Arc::ptr_eq(known, clock) {
            Arc::make_mut(known).join(clock);
        }
    }

    /// What is known of the threads of a cluster.
    pub(crate) fn of(&self, cluster: u64) -> Option<&Clock> {
        Some(self.0.as_ref()?.get(&cluster)?)
    }

    /// Is a moment of a cluster known?
    pub(crate) fn knows(&self, cluster: u64, m: &Moment) -> bool {
        self.of(cluster).is_some_and(|c| c.knows(m))
    }
}
