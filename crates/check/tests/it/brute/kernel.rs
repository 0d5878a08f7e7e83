//! The kernel of a pipeline.

use crate::brute::pipeline::{Act, Part, Pipeline, Role};
use warpline_ir::builder::*;
use warpline_ir::{Kernel, Operand, Target};

/// The words of half a slot.
const HALF_WORDS: u32 = 16;
/// The bytes of half a slot.
const HALF_BYTES: u32 = 4 * HALF_WORDS;

/// Builds the kernel. Each parameter `counts{i}` packs the counts of all tiles, four bits per tile, so
/// that a launch can pass any sequence. In a `plain` pipeline the parameter is the count of every tile.
pub(crate) fn kernel(pipeline: &Pipeline) -> Kernel {
    let built = Kernel::build(&pipeline.name, &Target::SM_90A, |k| {
        if pipeline.pair {
            k.cluster(2, 1, 1);
        }
        let x = k.pointer::<f32>("x");
        let (tiles, mask) = (k.param::<u32>("tiles"), k.param::<u32>("mask"));
        let counts: Vec<_> = (0..pipeline.counts)
            .map(|i| k.param::<u32>(&format!("counts{i}")))
            .collect();
        let rings: Vec<_> = (pipeline.rings.iter().enumerate())
            .map(|(i, r)| RingStorage {
                stages: r.stages.into(),
                expects: r.expects.into(),
                pair: pipeline.pair,
                tile: k
                    .tile(&format!("ring{i}"), 2, HALF_WORDS)
                    .unswizzled()
                    .stages(r.stages.into())
                    .declare(),
                full: k
                    .barrier(&format!("full{i}"), r.stages.into())
                    .arrivals(r.full.into()),
                empty: k
                    .barrier(&format!("empty{i}"), r.stages.into())
                    .arrivals(r.empty.into()),
            })
            .collect();
        for role in &pipeline.roles {
            k.role(role.name).body(|| {
                let cursors: Vec<_> = rings
                    .iter()
                    .zip(&role.parity)
                    .map(|(&ring, &p)| RingCursor::new(ring, p.into(), x, role.lane))
                    .collect();
                let (first, step) = match pipeline.pair {
                    true => (cluster_id(), grid_clusters()),
                    false => (cta_id(), grid_ctas()),
                };
                let is_later = Var::new(0u32);
                let all = || {
                    range(first, tiles).step_by(step).each(|t| {
                        let steps: Vec<_> = counts
                            .iter()
                            .map(|&c| {
                                if pipeline.plain {
                                    c
                                } else {
                                    c >> (t * 4) & mask
                                }
                            })
                            .collect();
                        tile(role, &steps, is_later, &cursors);
                        is_later.set(1u32);
                    });
                    acts(&role.last, &[], &cursors);
                };
                match role.lane {
                    true => elect(all),
                    false => all(),
                }
            });
        }
    });
    built.unwrap_or_else(|e| panic!("{}: {e}", pipeline.name))
}

/// Emits one tile, with these numbers of steps.
fn tile(role: &Role, counts: &[Reg<u32>], is_later: Var<u32>, cursors: &[RingCursor]) {
    let run_steps = |count: usize, more: u8, list: &[Act]| {
        steps(counts[count] + u32::from(more)).each(|_| acts(list, counts, cursors));
    };
    let parts = || {
        for part in &role.tile {
            match part {
                Part::Once(list) => acts(list, counts, cursors),
                Part::Later(list) => if_(is_later.get().eq(1u32), || acts(list, counts, cursors)),
                Part::Steps {
                    count,
                    more,
                    later: true,
                    acts: list,
                } => if_(is_later.get().eq(1u32), || run_steps(*count, *more, list)),
                Part::Steps {
                    count,
                    more,
                    acts: list,
                    ..
                } => run_steps(*count, *more, list),
            }
        }
    };
    match role.skips {
        true => if_(counts[0].gt(0u32), parts),
        false => parts(),
    }
}

fn acts(list: &[Act], counts: &[Reg<u32>], cursors: &[RingCursor]) {
    for act in list {
        match *act {
            Act::AwaitEmpty(r) => cursors[r].await_empty(),
            Act::AwaitFull(r) => cursors[r].await_full(),
            Act::Copy(r) => cursors[r].copy(),
            Act::Write(r) => cursors[r].write(),
            Act::Read(r) => cursors[r].read(),
            Act::Commit(r) => cursors[r].commit(),
            Act::Release { ring, late } => cursors[ring].release(late.into()),
            Act::Drain(r) => cursors[r].drain(),
            Act::Drop(r) => cursors[r].drop_held(),
            Act::Pass { ring, count } => cursors[ring].pass(counts[count]),
            Act::Advance(r) => cursors[r].advance(),
            Act::Restart(r) => cursors[r].restart(),
        }
    }
}

/// A ring in shared memory.
#[derive(Clone, Copy)]
struct RingStorage {
    stages: u32,
    expects: u32,
    pair: bool,
    tile: Tile<f32>,
    full: MbarrierArray,
    empty: MbarrierArray,
}

/// The position of a role in a ring, and the slots that it has not released yet.
struct RingCursor {
    ring: RingStorage,
    from: Global<f32>,
    lane: bool,
    first_parity: u32,
    stage: Var<u32>,
    parity: Var<u32>,
    tail: Var<u32>,
    held: Var<u32>,
}

impl RingCursor {
    fn new(ring: RingStorage, parity: u32, from: Global<f32>, lane: bool) -> Self {
        Self {
            ring,
            from,
            lane,
            first_parity: parity,
            stage: Var::new(0u32),
            parity: Var::new(parity),
            tail: Var::new(0u32),
            held: Var::new(0u32),
        }
    }

    fn await_empty(&self) {
        let empty = self.ring.empty.at(self.stage.get());
        match self.ring.pair {
            true => empty.wait_cluster(self.parity.get()),
            false => empty.wait(self.parity.get()),
        }
    }

    fn await_full(&self) {
        let full = self.ring.full.at(self.stage.get());
        full.wait(self.parity.get());
    }

    fn copy(&self) {
        let (stage, from) = (self.stage.get(), self.from.address(0u32));
        let (slot, full) = (self.ring.tile.stage(stage), self.ring.full.at(stage));
        if !self.ring.pair {
            return bulk_load(slot, from, 2 * HALF_BYTES, full);
        }
        let half = |i: u32| {
            let to = slot.slice(i..i + 1, 0..HALF_WORDS);
            bulk_load_with(
                to,
                from,
                HALF_BYTES,
                full,
                Some(Operand::imm(0b11u16)),
                None,
            );
        };
        if_else(cluster_rank().eq(0u32), || half(0), || half(1));
    }

    fn write(&self) {
        let slot = self.ring.tile.stage(self.stage.get());
        slot.store(lane_id() / HALF_WORDS, lane_id() % HALF_WORDS, 1.0);
    }

    fn read(&self) {
        let slot = self.ring.tile.stage(self.stage.get());
        slot.load(lane_id() / HALF_WORDS, lane_id() % HALF_WORDS);
    }

    fn commit(&self) {
        let full = self.ring.full.at(self.stage.get());
        self.one_lane(|| match self.ring.expects {
            0 => full.arrive(),
            halves => full.arrive_expect(halves * HALF_BYTES),
        });
    }

    /// Lets one lane arrive for the warp.
    fn one_lane(&self, arrive: impl FnOnce()) {
        match self.lane {
            true => arrive(),
            false => {
                warp_sync();
                elect_lane(arrive);
            }
        }
    }

    fn release(&self, late: u32) {
        match late {
            0 => self.give_back(),
            _ => {
                let holds_late_slots = self.held.get().eq(late);
                if_else(holds_late_slots, || self.give_back(), || self.hold());
            }
        }
    }

    fn hold(&self) {
        self.held.set(self.held.get() + 1);
    }

    fn give_back(&self) {
        let tail = self.tail.get();
        if self.ring.expects > 0 {
            fence_async();
        }
        self.one_lane(|| {
            let empty = self.ring.empty.at(tail);
            match self.ring.pair {
                false => empty.arrive(),
                true => {
                    empty.arrive_cluster();
                    empty.peer(cluster_rank() ^ 1).arrive_cluster();
                }
            }
        });
        self.tail.set(self.after(tail));
    }

    fn drain(&self) {
        while_(
            || self.held.get().gt(0u32),
            || {
                self.give_back();
                self.held.set(self.held.get() - 1);
            },
        );
    }

    fn drop_held(&self) {
        self.held.set(0u32);
        self.tail.set(self.stage.get());
    }

    fn advance(&self) {
        let (stage, parity) = (self.stage.get(), self.parity.get());
        let last = stage.eq(self.ring.stages - 1);
        self.parity.set(select(last, parity ^ 1, parity));
        self.stage.set(self.after(stage));
    }

    fn pass(&self, n: Reg<u32>) {
        let to = self.stage.get() + n;
        self.parity
            .set(self.parity.get() ^ ((to / self.ring.stages) & 1));
        self.stage.set(to % self.ring.stages);
        self.tail.set(self.stage.get());
    }

    fn after(&self, stage: Reg<u32>) -> Reg<u32> {
        select(stage.eq(self.ring.stages - 1), 0u32, stage + 1)
    }

    fn restart(&self) {
        self.parity.set(self.first_parity);
        [self.stage, self.tail, self.held]
            .into_iter()
            .for_each(|v| v.set(0u32));
    }
}
