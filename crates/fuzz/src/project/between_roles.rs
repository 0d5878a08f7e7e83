//! Steps between two roles of a CTA.

use super::StepResources;
use super::env::RoleEnv;
use super::transfer::ArriveElected;
use super::value::Number;
use crate::plan::{
    LengthBug, NamedHandshake, RegisterTransfer, Reinit, Reread, SharedWord, SyncFreeLoop,
    TableElem, Turns, VariableLoad,
};
use warpline_ir::builder::*;

/// Declares mbarriers with these arrival counts.
fn declare_barriers(k: Builder, name: &str, arrivals: &[u32]) -> Vec<MbarrierArray> {
    let each = arrivals.iter().enumerate();
    each.map(|(i, &n)| k.barrier(&format!("{name}.{i}"), 1).arrivals(n))
        .collect()
}

/// Waits with the parity of a variable and flips it.
fn wait_and_flip(bar: MbarrierArray, parity: Var<u32>) {
    bar.at(0u32).wait(parity.get());
    parity.set(parity.get() ^ 1);
}

/// Emits `n` handshakes of two roles: the leader arrives and waits, the follower waits and arrives.
fn handshake(
    n: Reg<u32>,
    is_leader: bool,
    request: MbarrierArray,
    reply: MbarrierArray,
    parity: Var<u32>,
) {
    steps(n).each(|_| {
        if is_leader {
            request.at(0u32).arrive_elected();
            wait_and_flip(reply, parity);
        } else {
            wait_and_flip(request, parity);
            reply.at(0u32).arrive_elected();
        }
    });
}

impl SharedWord {
    pub(super) fn declare(&self, k: Builder, name: &str, warps: &[u32]) -> StepResources {
        let (writers, readers) = (warps[self.writer], warps[self.reader]);
        StepResources {
            tile: Some(k.tile(name, 1, 32).unswizzled().declare()),
            bars: declare_barriers(k, name, &[writers, readers, readers, writers]),
            ..StepResources::default()
        }
    }

    pub(super) fn vars(&self, role: usize) -> Vec<u32> {
        match role {
            r if r == self.writer => vec![1, 0],
            r if r == self.reader => vec![0, 0],
            _ => Vec::new(),
        }
    }

    pub(super) fn emit(&self, env: &RoleEnv<'_>, resources: &StepResources, id: usize) {
        let Some(tile) = resources.tile else { return };
        let [ready, taken, request, reply] = resources.bars[..] else {
            return;
        };
        let vars = &env.vars[id];
        if env.role == self.writer {
            wait_and_flip(taken, vars[0]);
            let raw = match self.add {
                0 => env.number(self.count.source).word(),
                _ => env.count(&self.count),
            };
            elect(|| {
                tile.whole().store(0u32, 0u32, raw);
                if self.add > 0 {
                    use warpline_ir::{MemoryOrder, Scope, ops::atomic::AtomicOp};
                    let order = MemoryOrder::relaxed(Scope::Cta);
                    tile.whole()
                        .atomic_ref(0u32, 0u32)
                        .reduce(AtomicOp::Add, self.add, order);
                }
            });
            ready.at(0u32).arrive_elected();
            let n = match (self.add, self.stale) {
                (0, _) => env.count(&self.count),
                (_, true) => raw,
                (add, false) => raw + add,
            };
            handshake(n, false, request, reply, vars[1]);
        } else if env.role == self.reader {
            wait_and_flip(ready, vars[0]);
            let word = tile.whole();
            let value = match self.read {
                TableElem::U8 => Number::U8(word.load_as::<u8, 1>(0u32, 0u32)[0]),
                TableElem::U16 => Number::U16(word.load_as::<u16, 1>(0u32, 0u32)[0]),
                TableElem::U32 => Number::U32(word.load(0u32, 0u32)),
                TableElem::I32 => Number::I32(word.load_as::<i32, 1>(0u32, 0u32)[0]),
            };
            taken.at(0u32).arrive_elected();
            let n = match self.add {
                0 => env.count_from_number(&self.count, value),
                _ => value.word(),
            };
            handshake(n, true, request, reply, vars[1]);
        }
    }
}

impl SyncFreeLoop {
    pub(super) fn declare(&self, k: Builder, name: &str, warps: &[u32]) -> StepResources {
        StepResources {
            bars: declare_barriers(k, name, &[warps[self.setter], warps[self.waiter]]),
            ..StepResources::default()
        }
    }

    pub(super) fn vars(&self, role: usize) -> Vec<u32> {
        match role == self.setter || role == self.waiter {
            true => vec![0],
            false => Vec::new(),
        }
    }

    pub(super) fn emit(&self, env: &RoleEnv<'_>, resources: &StepResources, id: usize) {
        let [request, reply] = resources.bars[..] else {
            return;
        };
        if env.role == self.setter {
            let times = Var::new(0u32);
            steps(env.count(&self.count)).each(|_| times.set(self.value));
            handshake(times.get(), true, request, reply, env.vars[id][0]);
        } else if env.role == self.waiter {
            let n = env.count(&self.count);
            let times = match self.stale {
                true => self.value.reg(),
                false => n.min(1u32) * self.value,
            };
            handshake(times, false, request, reply, env.vars[id][0]);
        }
    }
}

impl RegisterTransfer {
    pub(super) fn declare(&self, k: Builder, name: &str, warps: &[u32]) -> StepResources {
        StepResources {
            bars: declare_barriers(k, name, &[warps[self.taker]]),
            ..StepResources::default()
        }
    }

    pub(super) fn emit(&self, env: &RoleEnv<'_>, resources: &StepResources, id: usize) {
        let parity = env.vars[id][0];
        if env.role == self.giver {
            if !self.late {
                setmaxnreg_dec(24);
            }
            wait_and_flip(resources.bars[0], parity);
            if self.late {
                setmaxnreg_dec(24);
            }
        } else if env.role == self.taker {
            setmaxnreg_inc(240);
            resources.bars[0].at(0u32).arrive_elected();
        }
    }
}

impl Reread {
    pub(super) fn declare(&self, k: Builder, name: &str, warps: &[u32]) -> StepResources {
        StepResources {
            tile: Some(k.tile(name, 1, 32).unswizzled().declare()),
            bars: declare_barriers(k, name, &[warps[self.writer], warps[self.reader]]),
            ..StepResources::default()
        }
    }

    pub(super) fn vars(&self, role: usize) -> Vec<u32> {
        match role {
            r if r == self.writer => vec![1],
            r if r == self.reader => vec![0],
            _ => Vec::new(),
        }
    }

    pub(super) fn emit(&self, env: &RoleEnv<'_>, resources: &StepResources, id: usize) {
        let Some(tile) = resources.tile else { return };
        let [full, empty] = resources.bars[..] else {
            return;
        };
        // Two rounds: the second store conflicts with the reads of the first round.
        for round in 0..2u32 {
            if env.role == self.writer {
                wait_and_flip(empty, env.vars[id][0]);
                let first = warp_in_role().eq(0u32);
                if_(first, || {
                    tile.whole().store(0u32, lane_id(), lane_id() + round)
                });
                full.at(0u32).arrive_elected();
            } else if env.role == self.reader {
                wait_and_flip(full, env.vars[id][0]);
                warp_sync();
                env.accumulate(tile.whole().load(0u32, 3u32));
                if !self.unsynced {
                    warp_sync();
                }
                elect_lane(|| {
                    // Not accumulated: the machine picks the elected lane.
                    let _ = tile.whole().load(0u32, 3u32);
                    empty.at(0u32).arrive();
                });
            }
        }
    }
}

impl VariableLoad {
    /// The words of a row.
    const ROW: u32 = 16;

    pub(super) fn declare(&self, k: Builder, name: &str, warps: &[u32]) -> StepResources {
        StepResources {
            tile: Some(k.tile(name, self.rows, Self::ROW).unswizzled().declare()),
            bars: declare_barriers(k, name, &[1, warps[self.reader]]),
            ..StepResources::default()
        }
    }

    pub(super) fn vars(&self, role: usize) -> Vec<u32> {
        match role {
            r if r == self.loader => vec![1],
            r if r == self.reader => vec![0],
            _ => Vec::new(),
        }
    }

    pub(super) fn emit(&self, env: &RoleEnv<'_>, resources: &StepResources, id: usize) {
        let Some(tile) = resources.tile else { return };
        let [full, empty] = resources.bars[..] else {
            return;
        };
        if env.role == self.loader {
            let raw = env.number(self.source).word();
            let max_unit = match self.bug {
                Some(LengthBug::Unbounded) => 63,
                _ => 4 * self.rows - 1,
            };
            let unit = match self.bug {
                Some(LengthBug::Unaligned) => 4u32,
                _ => 16,
            };
            let bytes = ((raw & max_unit) + 1) * unit;
            // One lane issues the load, so one warp waits.
            let load = || {
                wait_and_flip(empty, env.vars[id][0]);
                warp_sync();
                elect_lane(|| {
                    let full = full.at(0u32);
                    bulk_load(tile.whole(), env.inputs.data.address(0u32), bytes, full);
                    full.arrive_expect(bytes);
                });
            };
            match env.warps(env.role) {
                1 => load(),
                _ => if_(warp_in_role().eq(0u32), load),
            }
        } else if env.role == self.reader {
            let store = |row: u32| {
                let first = warp_in_role().eq(0u32) & lane_id().lt(Self::ROW);
                if_(first, || tile.whole().store(row, lane_id(), lane_id()));
            };
            match self.bug {
                Some(LengthBug::NoWait) => store(0),
                Some(LengthBug::EarlyRow) => store(self.rows - 1),
                _ => {}
            }
            wait_and_flip(full, env.vars[id][0]);
            env.accumulate(tile.whole().load(0u32, lane_id() & 3));
            fence_async();
            empty.at(0u32).arrive_elected();
        }
    }
}

impl NamedHandshake {
    pub(super) fn declare(&self, k: Builder, name: &str, warps: &[u32]) -> StepResources {
        let columns = 32 * warps[self.from];
        StepResources {
            tile: Some(k.tile(name, 1, columns).unswizzled().declare()),
            named: vec![
                k.named_barrier(&format!("{name}.full")),
                k.named_barrier(&format!("{name}.empty")),
            ],
            ..StepResources::default()
        }
    }

    pub(super) fn emit(&self, env: &RoleEnv<'_>, resources: &StepResources) {
        let Some(tile) = resources.tile else { return };
        let [full, empty] = resources.named[..] else {
            return;
        };
        let threads = 32 * (env.warps(self.from) + env.warps(self.to));
        if env.role == self.from {
            tile.whole().store(0u32, thread_in_role(), lane_id() * 5);
            match self.arrive {
                true => full.arrive(threads),
                false => full.sync(threads),
            }
            empty.sync(threads);
        } else if env.role == self.to {
            full.sync(threads);
            for part in 0..env.warps(self.from) {
                env.accumulate(tile.whole().load(0u32, lane_id() + 32 * part));
            }
            match self.arrive {
                true => empty.arrive(threads),
                false => empty.sync(threads),
            }
        }
    }
}

impl Reinit {
    pub(super) fn declare(&self, k: Builder, name: &str, warps: &[u32]) -> StepResources {
        StepResources {
            bars: declare_barriers(k, name, &[warps[self.arriver]]),
            ..StepResources::default()
        }
    }

    pub(super) fn emit(&self, env: &RoleEnv<'_>, resources: &StepResources) {
        let bar = resources.bars[0].at(0u32);
        if env.role == self.arriver {
            bar.arrive_elected();
        } else if env.role == self.waiter {
            bar.wait(0u32);
        }
        if !self.early {
            cta_sync();
        }
        if env.role == self.waiter {
            elect(|| {
                bar.inval();
                bar.init(env.warps(self.arriver));
                fence_mbarrier_init();
            });
        }
        cta_sync();
    }
}

impl Turns {
    pub(super) fn declare(&self, k: Builder, name: &str) -> StepResources {
        let roles = self.roles.map(super::role_name);
        StepResources {
            turn: Some(k.turn(name, [roles[0].as_str(), roles[1].as_str()])),
            ..StepResources::default()
        }
    }

    pub(super) fn emit(&self, env: &RoleEnv<'_>, resources: &StepResources) {
        let (true, Some(turn)) = (self.roles.contains(&env.role), resources.turn) else {
            return;
        };
        steps(env.count(&self.count)).each(|i| turn.hold(|| env.accumulate(i)));
    }
}
