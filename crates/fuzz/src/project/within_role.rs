//! Steps inside one role.

use super::StepResources;
use super::env::RoleEnv;
use crate::plan::{BulkExport, Gather, LaneCopies, PartialGroup, StridedLoop};
use warpline_ir::builder::*;

/// Declares a tile with this number of stages.
fn staged_tile(k: Builder, name: &str, stages: u32) -> StepResources {
    StepResources {
        tile: Some(k.tile(name, 1, 32).unswizzled().stages(stages).declare()),
        ..StepResources::default()
    }
}

impl BulkExport {
    pub(super) fn declare(&self, k: Builder, name: &str, warps: &[u32]) -> StepResources {
        staged_tile(k, name, self.groups * warps[self.role])
    }

    pub(super) fn emit(&self, env: &RoleEnv<'_>, resources: &StepResources, id: usize) {
        let (true, Some(tile)) = (env.role == self.role, resources.tile) else {
            return;
        };
        let first = warp_in_role() * self.groups;
        for group in 0..self.groups {
            tile.stage(first + group)
                .store(0u32, lane_id(), lane_id() + group);
        }
        match self.fence_in_branch {
            true => if_(env.selected, fence_async),
            false => fence_async(),
        }
        warp_sync();
        let destinations: Vec<_> = (0..self.groups).map(|g| env.scratch(id, g)).collect();
        elect_lane(|| {
            for (group, to) in destinations.into_iter().enumerate() {
                bulk_store(tile.stage(first + group as u32), to, 128u32);
                bulk_commit();
            }
            bulk_wait(0);
        });
        warp_sync();
    }
}

impl Gather {
    pub(super) fn declare(&self, k: Builder, name: &str, warps: &[u32]) -> StepResources {
        staged_tile(k, name, warps[self.role])
    }

    pub(super) fn emit(&self, env: &RoleEnv<'_>, resources: &StepResources) {
        let (true, Some(tile)) = (env.role == self.role, resources.tile) else {
            return;
        };
        let slot = tile.stage(warp_in_role());
        let permuted = match (self.unknown, self.scatter) {
            (false, _) => lane_id() ^ 1,
            (true, false) => env.inputs.u32s.load(lane_id()) & 31,
            // One mask for all lanes: no two lanes store to the same address.
            (true, true) => lane_id() ^ (env.inputs.u32s.load(3u32) & 31),
        };
        let (to, from) = match self.scatter {
            true => (permuted, lane_id()),
            false => (lane_id(), permuted),
        };
        slot.store(0u32, to, lane_id() + 7);
        if !self.unsynced {
            warp_sync();
        }
        env.accumulate(slot.load(0u32, from));
        warp_sync();
    }
}

impl LaneCopies {
    pub(super) fn declare(&self, k: Builder, name: &str, warps: &[u32]) -> StepResources {
        staged_tile(k, name, self.groups * warps[self.role])
    }

    pub(super) fn emit(&self, env: &RoleEnv<'_>, resources: &StepResources) {
        let (true, Some(tile)) = (env.role == self.role, resources.tile) else {
            return;
        };
        let first = warp_in_role() * self.groups;
        let subset = match self.unknown {
            true => env.selected,
            false => lane_id().lt(16u32),
        };
        for group in 0..self.groups {
            let from = env.inputs.data.address(lane_id() + 32 * group);
            tile.stage(first + group)
                .copy_from(0u32, lane_id(), from, 4);
            match self.partial {
                Some(PartialGroup::Commit) if group + 1 == self.groups => {
                    if_(subset, copy_commit);
                }
                _ => copy_commit(),
            }
        }
        match self.partial {
            Some(PartialGroup::Wait) => if_(subset, || copy_wait(0)),
            _ => copy_wait(0),
        }
        warp_sync();
        for group in 0..self.groups {
            env.accumulate(tile.stage(first + group).load(0u32, lane_id() ^ 1));
        }
        warp_sync();
    }
}

impl StridedLoop {
    pub(super) fn emit(&self, env: &RoleEnv<'_>) {
        if env.role != self.role {
            return;
        }
        let (end, by) = (env.inputs.small, env.inputs.other);
        let by = if self.bounded { by.max(1u32) } else { by };
        if self.spin {
            let i = Var::new(0u32);
            while_(|| i.get().lt(end), || i.set(i.get() + by));
            env.accumulate(i.get());
        } else {
            range(0u32, end).step_by(by).each(|i| env.accumulate(i));
        }
    }
}
