//! Merges the shadows of clusters that ran independently, in grid order.

use crate::env::Env;
use crate::error::{RaceKind, RunError};
use crate::global_access::{global_help, race};
use crate::global_shadow::GlobalShadow;
use std::collections::BTreeMap;

/// The merged shadow of global memory.
#[derive(Debug)]
pub(crate) struct ShadowMerger<'e, 'k> {
    env: &'e Env<'k>,
    /// The next cluster to merge; `waiting` has the later ones.
    next: u64,
    waiting: BTreeMap<u64, GlobalShadow>,
    all: GlobalShadow,
}

impl<'e, 'k> ShadowMerger<'e, 'k> {
    /// Creates a merge without clusters.
    pub(crate) fn new(env: &'e Env<'k>) -> Self {
        Self {
            env,
            next: 0,
            waiting: BTreeMap::new(),
            all: GlobalShadow::new(env.threads.warps),
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
            if let Some(e) = self.absorb(&global) {
                return Err((self.next, e));
            }
            self.next += 1;
        }
        Ok(())
    }

    fn absorb(&mut self, global: &GlobalShadow) -> Option<Box<RunError>> {
        let found = self.all.absorb(global)?;
        let (who, with) = (found.who, found.conflict.with);
        let here = (who.cluster, who.warp);
        let fault = race(self.env, here, found.buffer, found.writes, &found.conflict);
        Some(Box::new(RunError {
            kind: fault.kind,
            text: fault.text,
            at: Some(self.env.op_location(who.cluster, who.warp, who.site)),
            lane: None,
            other: Some(self.env.op_location(with.cluster, with.warp, with.site)),
            race: Some(RaceKind::of(found.writes, found.conflict.wrote)),
            help: Some(global_help(found.conflict.why)),
            waits: Vec::new(),
        }))
    }
}
