//! The shadows of clusters that ran apart, put together in the order of the grid.

use crate::env::Env;
use crate::error::RunError;
use crate::global::Global;
use crate::reach::race;
use std::collections::BTreeMap;

/// What the clusters so far have touched of global memory.
#[derive(Debug)]
pub(crate) struct Merge<'e, 'k> {
    env: &'e Env<'k>,
    /// The next cluster to add; those that came before their turn wait.
    next: u64,
    waiting: BTreeMap<u64, Global>,
    all: Global,
}

impl<'e, 'k> Merge<'e, 'k> {
    /// No cluster yet.
    pub(crate) fn new(env: &'e Env<'k>) -> Self {
        Self {
            env,
            next: 0,
            waiting: BTreeMap::new(),
            all: Global::new(env.threads.warps),
        }
    }

    /// Adds a cluster that has ended. What it or a later one touches that one
    /// before it touched too, and not both read, is a race of the later one.
    pub(crate) fn add(
        &mut self,
        cluster: u64,
        global: Option<Global>,
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

    fn absorb(&mut self, global: &Global) -> Option<Box<RunError>> {
        let meeting = self.all.absorb(global)?;
        let (who, with) = (meeting.who, meeting.conflict.with);
        let here = (who.cluster, who.warp);
        let fault = race(
            self.env,
            here,
            meeting.buffer,
            meeting.writes,
            &meeting.conflict,
        );
        Some(Box::new(RunError {
            kind: fault.kind,
            text: fault.text,
            at: Some(self.env.party(who.cluster, who.warp, who.site)),
            lane: None,
            other: Some(self.env.party(with.cluster, with.warp, with.site)),
            waits: Vec::new(),
        }))
    }
}
