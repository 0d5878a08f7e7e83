//! Merges the shadows of clusters that ran independently, in grid order.

use crate::env::Env;
use crate::error::{RaceKind, RunError};
use crate::global_access::{global_help, global_race_fault};
use crate::global_shadow::GlobalShadow;
use std::collections::BTreeMap;

/// The merged shadow of global memory.
#[derive(Debug)]
pub(crate) struct ShadowMerger<'e, 'k> {
    env: &'e Env<'k>,
    /// The next cluster to merge. `waiting` holds later clusters that completed before it.
    next: u64,
    waiting: BTreeMap<u64, GlobalShadow>,
    merged: GlobalShadow,
}

impl<'e, 'k> ShadowMerger<'e, 'k> {
    /// Creates a merger without clusters.
    pub(crate) fn new(env: &'e Env<'k>) -> Self {
        Self {
            env,
            next: 0,
            waiting: BTreeMap::new(),
            merged: GlobalShadow::new(env.threads.warps_per_cta),
        }
    }

    /// Adds a completed cluster. Conflicting accesses of two clusters are a race, reported at the
    /// later cluster.
    pub(crate) fn add(
        &mut self,
        cluster: u64,
        global: Option<GlobalShadow>,
    ) -> Result<(), (u64, Box<RunError>)> {
        let Some(global) = global else { return Ok(()) };
        if self.env.clusters() == 1 {
            return Ok(());
        }
        self.waiting.insert(cluster, global);
        while let Some(global) = self.waiting.remove(&self.next) {
            if let Some(e) = self.merge(&global) {
                return Err((self.next, e));
            }
            self.next += 1;
        }
        Ok(())
    }

    fn merge(&mut self, global: &GlobalShadow) -> Option<Box<RunError>> {
        let found = self.merged.merge(global)?;
        let (later, earlier) = (found.later, found.conflict.earlier);
        let here = (later.cluster, later.warp);
        let fault = global_race_fault(self.env, here, found.buffer, found.writes, &found.conflict);
        Some(Box::new(RunError {
            kind: fault.kind,
            text: fault.text,
            at: Some(self.env.op_location(later.cluster, later.warp, later.site)),
            lane: None,
            other: Some(
                self.env
                    .op_location(earlier.cluster, earlier.warp, earlier.site),
            ),
            race: Some(RaceKind::of(found.writes, found.conflict.wrote)),
            help: Some(global_help(found.conflict.reason)),
            waits: Vec::new(),
        }))
    }
}
