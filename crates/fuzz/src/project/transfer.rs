//! Rings, with raw mbarriers or with the `Ring` of the builder.

use super::StepResources;
use super::env::RoleEnv;
use super::loops::emit_loop;
use crate::plan::{Guard, NumberSource, RingPosition, SlotFill, TableIndex, Transfer, WaitForm};
use warpline_ir::builder::*;

/// The words of a slot for each warp of the producer.
const WORDS: u32 = 32;

/// The words of the buffer from which slots are loaded.
pub(crate) const DATA_WORDS: u32 = 4096;

/// Indices of the variables of a role at one end of a ring.
const STAGE: usize = 0;
const PARITY: usize = 1;
const ITEMS: usize = 2;
const DONE: usize = 3;

impl Transfer {
    fn columns(&self, warps: &[u32]) -> u32 {
        match self.fill {
            SlotFill::Bulk => WORDS,
            _ => WORDS * warps[self.producer],
        }
    }

    pub(super) fn declare(&self, k: Builder, name: &str, warps: &[u32]) -> StepResources {
        let columns = self.columns(warps);
        if self.safe {
            let ring = k.ring(name, self.stages, |s| s.vector::<u32>(columns));
            let ring = if self.consumers.len() > 1 {
                ring.broadcast()
            } else {
                ring
            };
            return StepResources {
                ring: Some(ring),
                ..StepResources::default()
            };
        }
        let slots = k.tile(name, 1, columns).unswizzled().stages(self.stages);
        let fills = match self.fill {
            SlotFill::Bulk => 1,
            SlotFill::Stores => warps[self.producer],
            SlotFill::Lanes => 32 * warps[self.producer],
        };
        let reads: u32 = self.consumers.iter().map(|&c| warps[c]).sum();
        let mut bars = vec![
            k.barrier(&format!("{name}.full"), self.stages)
                .arrivals(fills),
            k.barrier(&format!("{name}.empty"), self.stages)
                .arrivals(reads),
        ];
        if self.tail {
            let arrivals = warps[self.consumers[0]];
            bars.push(k.barrier(&format!("{name}.done"), 1).arrivals(arrivals));
        }
        StepResources {
            tile: Some(slots.declare()),
            bars,
            ..StepResources::default()
        }
    }

    pub(super) fn vars(&self, role: usize) -> Vec<u32> {
        match (self.safe, role == self.producer) {
            (true, _) => Vec::new(),
            (false, true) => vec![0, 1, 0, 0],
            (false, false) if self.consumers.contains(&role) => vec![0, 0, 0, 0],
            _ => Vec::new(),
        }
    }

    pub(super) fn emit(&self, env: &RoleEnv<'_>, resources: &StepResources, id: usize) {
        let fills = env.role == self.producer;
        if !fills && !self.consumers.contains(&env.role) {
            return;
        }
        // One lane fills a slot, so one warp waits for empty slots.
        if fills && self.fill == SlotFill::Bulk && !self.safe && env.warps(env.role) > 1 {
            let first = warp_in_role().eq(0u32);
            if_(first, || self.emit_guarded(env, resources, id));
        } else {
            self.emit_guarded(env, resources, id);
        }
    }

    /// Emits the items under the condition of the whole transfer.
    fn emit_guarded(&self, env: &RoleEnv<'_>, resources: &StepResources, id: usize) {
        let is_whole_transfer = |g: &&Guard| {
            !matches!(
                g.source,
                NumberSource::Table {
                    at: TableIndex::Item,
                    ..
                }
            )
        };
        match self.guard.as_ref().filter(is_whole_transfer) {
            Some(guard) => {
                let holds = env.guard(guard);
                if_(holds, || self.emit_items(env, resources, id));
            }
            None => self.emit_items(env, resources, id),
        }
    }

    /// Emits the loop over the items.
    fn emit_items(&self, env: &RoleEnv<'_>, resources: &StepResources, id: usize) {
        let fills = env.role == self.producer;
        let n = env.count(&self.count);
        let form = self.loops[usize::from(!fills)];
        let per_item = self.guard.as_ref().filter(|g| {
            matches!(
                g.source,
                NumberSource::Table {
                    at: TableIndex::Item,
                    ..
                }
            )
        });
        emit_loop(n, form, self.stages, &|i| {
            let inner = RoleEnv {
                item: Some(i),
                vars: env.vars.clone(),
                ..*env
            };
            match per_item {
                Some(guard) => {
                    let holds = inner.guard(guard);
                    if_(holds, || self.emit_item(&inner, resources, id, n, i));
                }
                None => self.emit_item(&inner, resources, id, n, i),
            }
            let signals_in_loop =
                self.tail && env.role == self.consumers[0] && !self.signals_after_loop();
            if signals_in_loop {
                if_((i + 1).eq(n), || {
                    resources.bars[2].at(0u32).arrive_elected()
                });
            }
        });
        if self.tail && !self.safe {
            let done = resources.bars[2].at(0u32);
            if fills {
                if_(n.ne(0u32), || {
                    let parity = env.vars[id][DONE];
                    done.wait(parity.get());
                    parity.set(parity.get() ^ 1);
                });
            } else if env.role == self.consumers[0] && self.signals_after_loop() {
                if_(n.gt(0u32), || done.arrive_elected());
            }
        }
    }

    /// Returns whether the consumer signals after the loop, not in the last iteration.
    fn signals_after_loop(&self) -> bool {
        self.count.forms.first().is_some_and(|f| f & 16 != 0)
    }

    fn emit_item(
        &self,
        env: &RoleEnv<'_>,
        resources: &StepResources,
        id: usize,
        n: Reg<u32>,
        i: Reg<u32>,
    ) {
        if let Some(ring) = resources.ring {
            return self.emit_ring_item(env, ring, i);
        }
        let fills = env.role == self.producer;
        let form = self.position[usize::from(!fills)];
        let vars = &env.vars[id];
        let first = u32::from(fills);
        let (stage, parity) = match form {
            RingPosition::Cursor => (vars[STAGE].get(), vars[PARITY].get()),
            RingPosition::Counter => stage_and_parity(vars[ITEMS].get(), self.stages, first),
            RingPosition::Product => {
                let item = match env.round {
                    Some(round) => round * n + i,
                    None => i,
                };
                stage_and_parity(item, self.stages, first)
            }
        };
        if fills {
            self.emit_fill(env, resources, stage, parity, i);
        } else {
            self.emit_read(env, resources, stage, parity);
        }
        match form {
            RingPosition::Cursor => {
                let last = stage.eq(self.stages - 1);
                vars[STAGE].set(select(last, 0u32, stage + 1));
                vars[PARITY].set(select(last, parity ^ 1, parity));
            }
            RingPosition::Counter => vars[ITEMS].set(vars[ITEMS].get() + 1),
            RingPosition::Product => {}
        }
    }

    fn emit_fill(
        &self,
        env: &RoleEnv<'_>,
        resources: &StepResources,
        stage: Reg<u32>,
        parity: Reg<u32>,
        i: Reg<u32>,
    ) {
        let Some(slots) = resources.tile else { return };
        let (full, empty) = (resources.bars[0].at(stage), resources.bars[1].at(stage));
        let slot = slots.stage(stage);
        let from = (i & 63) * WORDS;
        empty.wait(parity);
        match self.fill {
            SlotFill::Bulk => {
                warp_sync();
                elect_lane(|| {
                    let bytes = 4 * WORDS;
                    bulk_load(slot, env.inputs.data.address(from), bytes, full);
                    full.arrive_expect(bytes);
                });
            }
            SlotFill::Stores => {
                let column = thread_in_role();
                slot.store(0u32, column, from + lane_id());
                warp_sync();
                elect_lane(|| full.arrive());
            }
            SlotFill::Lanes => {
                let column = thread_in_role();
                let from = env.inputs.data.address(from + lane_id());
                slot.copy_from(0u32, column, from, 4);
                full.arrive_after_copies();
            }
        }
    }

    fn emit_read(
        &self,
        env: &RoleEnv<'_>,
        resources: &StepResources,
        stage: Reg<u32>,
        parity: Reg<u32>,
    ) {
        let Some(slots) = resources.tile else { return };
        let (full, empty) = (resources.bars[0].at(stage), resources.bars[1].at(stage));
        match self.wait {
            WaitForm::Wait => full.wait(parity),
            WaitForm::Try => while_(|| !full.try_wait(parity), || {}),
            WaitForm::TestThenWait => {
                let passed = full.test(parity);
                if_(!passed, || full.wait(parity));
            }
        }
        for part in 0..self.columns(&env.plan.warps) / WORDS {
            env.accumulate(slots.stage(stage).load(0u32, lane_id() + part * WORDS));
        }
        if self.fill == SlotFill::Bulk {
            fence_async();
        }
        warp_sync();
        elect_lane(|| empty.arrive());
    }

    fn emit_ring_item(&self, env: &RoleEnv<'_>, ring: Ring<Tile<u32>>, i: Reg<u32>) {
        let from = (i & 63) * WORDS;
        if env.role != self.producer {
            let slot = ring.wait();
            env.accumulate(slot.load(0u32, lane_id()));
            slot.release();
            return;
        }
        match self.fill {
            SlotFill::Bulk => elect(|| {
                let slot = ring.acquire();
                slot.load_bytes(slot.tiles(), env.inputs.data.address(from), 4 * WORDS);
                slot.commit();
            }),
            _ => {
                let slot = ring.acquire();
                slot.store(0u32, thread_in_role(), from + lane_id());
                slot.commit();
            }
        }
    }
}

/// Returns the stage and the parity of an item.
fn stage_and_parity(item: Reg<u32>, stages: u32, first: u32) -> (Reg<u32>, Reg<u32>) {
    let parity = (item / stages) & 1;
    (item % stages, if first == 1 { parity ^ 1 } else { parity })
}

/// Arrivals of one lane on behalf of its warp.
pub(super) trait ArriveElected {
    /// Synchronizes the warp and arrives with one lane.
    fn arrive_elected(self);
}

impl ArriveElected for MbarrierHandle {
    fn arrive_elected(self) {
        warp_sync();
        elect_lane(|| self.arrive());
    }
}
