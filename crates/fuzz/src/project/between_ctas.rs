//! Steps between CTAs: in the cluster, and through global memory.

use super::StepResources;
use super::env::RoleEnv;
use crate::plan::{FlagBug, FlagHandshake, FuzzPlan, Locks, RemoteBug, RemoteStore};
use warpline_ir::builder::*;
use warpline_ir::ops::atomic::AtomicOp;
use warpline_ir::ops::memory::LoadCache;
use warpline_ir::{MemoryOrder, Scope};

impl RemoteStore {
    pub(super) fn declare(&self, k: Builder, name: &str, plan: &FuzzPlan) -> StepResources {
        let warps = plan.warps[self.role];
        let columns = 32 * plan.cluster;
        StepResources {
            tile: Some(
                k.tile(name, 1, columns)
                    .unswizzled()
                    .stages(warps)
                    .declare(),
            ),
            bars: match self.arrivals {
                true => vec![k.barrier(name, warps).arrivals(32)],
                false => Vec::new(),
            },
            ..StepResources::default()
        }
    }

    pub(super) fn emit(&self, env: &RoleEnv<'_>, resources: &StepResources, id: usize) {
        let Some(tile) = resources.tile else { return };
        let is_active = env.role == self.role;
        let size = env.plan.cluster;
        let slot = || tile.stage(warp_in_role());
        let peer = || match self.lanes {
            true => (cluster_rank() + lane_id()) & (size - 1),
            false => cluster_rank() ^ 1,
        };
        let read = || {
            let rank = cluster_rank();
            let column = match self.lanes {
                // A lane of the sender that stores to this CTA.
                true => {
                    let sender = (rank + self.sender) & (size - 1);
                    let lane = (rank - sender) & (size - 1);
                    sender * 32 + ((lane_id() & !(size - 1)) | lane)
                }
                false => (rank ^ 1) * 32 + lane_id(),
            };
            env.accumulate(slot().load(0u32, column));
        };
        if is_active {
            // The permutation maps the lanes of each peer to themselves.
            let lane = match self.unknown {
                true => lane_id() ^ (env.inputs.u32s.load(3u32) & 31 & !(size - 1)),
                false => lane_id(),
            };
            let column = cluster_rank() * 32 + lane;
            slot().peer(peer()).store(0u32, column, column + 1);
            if self.bug == Some(RemoteBug::Early) {
                warp_sync();
                read();
            }
        }
        match (self.arrivals, self.bug) {
            (true, bug) if is_active => {
                let bar = resources.bars[0].at(warp_in_role());
                let parity = env.vars[id][0];
                match bug {
                    Some(RemoteBug::CtaScope) => {
                        bar.peer(peer()).arrive();
                        bar.wait(parity.get());
                    }
                    _ => {
                        bar.peer(peer()).arrive_cluster();
                        bar.wait_cluster(parity.get());
                    }
                }
                parity.set(parity.get() ^ 1);
            }
            (true, _) => {}
            (false, Some(RemoteBug::CtaOnly)) => cta_sync(),
            (false, _) => cluster_sync(),
        }
        if is_active && self.bug != Some(RemoteBug::Early) {
            read();
        }
        cluster_sync();
    }
}

impl FlagHandshake {
    pub(super) fn declare(&self, k: Builder, name: &str) -> StepResources {
        StepResources {
            flags: Some(k.flags(name)),
            tile: self.bulk.then(|| {
                k.tile(&format!("{name}.staged"), 1, 32)
                    .unswizzled()
                    .declare()
            }),
            ..StepResources::default()
        }
    }

    pub(super) fn emit(&self, env: &RoleEnv<'_>, resources: &StepResources, id: usize) {
        let (true, Some(flags)) = (env.role == self.role, resources.flags) else {
            return;
        };
        let first = warp_in_role().eq(0u32);
        if_(first, || {
            let (me, ctas) = (cta_id(), grid_ctas());
            let peer = (me + 1) % ctas;
            let wait = || flags.wait(peer, 1u32);
            if self.bug == Some(FlagBug::WaitFirst) {
                wait();
            }
            let own = env.scratch_of_cta(id, me);
            match resources.tile {
                Some(tile) => {
                    tile.whole().store(0u32, lane_id(), lane_id() + me);
                    fence_async();
                    warp_sync();
                    elect_lane(|| {
                        bulk_store(tile.whole(), own.address(0u32), 128u32);
                        bulk_commit();
                        match self.bug {
                            Some(FlagBug::ReadWait) => bulk_wait_read(0),
                            _ => bulk_wait(0),
                        }
                        fence_async_all();
                    });
                }
                None => own.store(lane_id(), lane_id() + me),
            }
            let flag = |cta: Reg<u32>| env.inputs.flags.atomic_ref(cta + 8);
            match (self.once, self.bug) {
                (_, Some(FlagBug::Silent)) => {}
                (false, _) => flags.signal(me),
                (true, _) => {
                    let word = flag(me);
                    warp_sync();
                    let order = MemoryOrder::release(Scope::Gpu);
                    elect_lane(|| word.reduce(AtomicOp::Add, 1u32, order));
                }
            }
            let theirs = env.scratch_of_cta(id, peer);
            let read = || match self.bug {
                Some(FlagBug::ReadOnly) => {
                    let [x] = theirs.load_cached::<u32, 1>(lane_id(), LoadCache::READ_ONLY);
                    env.accumulate(x);
                }
                _ => env.accumulate(theirs.load(lane_id())),
            };
            match (self.once, self.bug) {
                (true, bug) => {
                    let order = match bug {
                        Some(FlagBug::ReadOnce) => MemoryOrder::relaxed(Scope::Gpu),
                        _ => MemoryOrder::acquire(Scope::Gpu),
                    };
                    if_(flag(peer).load(order).ne(0u32), read);
                }
                (_, Some(FlagBug::WaitFirst)) => read(),
                _ => {
                    wait();
                    read();
                }
            }
        });
    }
}

impl Locks {
    pub(super) fn emit(&self, env: &RoleEnv<'_>) {
        let Some(index) = self.roles.iter().position(|&r| r == env.role) else {
            return;
        };
        let order: [u32; 2] = match self.opposite && index == 1 {
            true => [1, 0],
            false => [0, 1],
        };
        let words = order.map(|i| env.inputs.flags.atomic_ref(i));
        elect(|| {
            for word in words {
                let taken = || word.compare_swap(0u32, 1u32, MemoryOrder::acquire(Scope::Gpu));
                while_(|| taken().ne(0u32), || nanosleep(20));
            }
            for word in words {
                word.store(0u32, MemoryOrder::release(Scope::Gpu));
            }
        });
    }
}
