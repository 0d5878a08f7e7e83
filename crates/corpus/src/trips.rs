//! R4: roles agree on how often they go round.

use crate::bug::{Bug, Built, Executor, Form};
use crate::case::Case;
use crate::kit::{BYTES, Ring, WORDS, give_back};
use crate::mark::{Source, this_file};
use crate::trial::Trial;
use warpline_ir::build::*;
use warpline_ir::{FaultKind, Kernel, Target};

const SOURCE: Source = this_file!("trips.rs");

pub(crate) const BUGS: &[Bug] = &[
    Bug {
        name: "tilelang-2566",
        reference: "tile-ai/tilelang#2566",
        title: "a loop of one round expects its bytes and does not arrive",
        rule: "R4.trips",
        executor: Executor::Faults(&[FaultKind::Deadlock]),
        build: single_round,
    },
    Bug {
        name: "vllm-26026",
        reference: "vllm-project/vllm#26026",
        title: "a role without work arrives at a named barrier, goes round and arrives again",
        rule: "R10.recycle",
        executor: Executor::Faults(&[FaultKind::Deadlock, FaultKind::Barrier]),
        build: empty_tile,
    },
    Bug {
        name: "fast-cu-7",
        reference: "pranjalssh/fast.cu#7",
        title: "the loader rounds the number of steps down, its consumer up",
        rule: "R4.trips",
        executor: Executor::Faults(&[FaultKind::Deadlock]),
        build: last_step,
    },
    Bug {
        name: "ragged-block",
        reference: "a port of multi-scale deformable attention",
        title: "a barrier of the whole block inside a grid-stride loop with a ragged last block",
        rule: "R4.trips",
        executor: Executor::Faults(&[FaultKind::Deadlock]),
        build: ragged_block,
    },
];

/// A copy of one round becomes a plain one without a map; on that path the
/// barrier is told of the bytes, and nobody arrives.
fn single_round(form: Form) -> Built {
    let kernel = Kernel::build("single_round", &Target::default(), |k| {
        let (n, x) = (k.param::<u32>("n"), k.pointer::<f32>("x"));
        let ring = Ring::new(k, "ring", 2, 1);
        k.role("load").body(|| {
            let at = ring.fills();
            elect(|| {
                steps(n).each(|i| {
                    let (slot, full) = (ring.slots.stage(at.stage()), ring.full.at(at.stage()));
                    ring.empty.at(at.stage()).wait(at.parity());
                    bulk_load(slot, x.address(i * WORDS), BYTES, full);
                    let arrive = || full.arrive_expect(BYTES);
                    match form {
                        Form::Broken => if_else(n.eq(1u32), || full.expect(BYTES), arrive),
                        Form::Repaired => arrive(),
                    }
                    at.advance();
                });
            });
        });
        k.role("math").body(|| {
            let at = ring.reads();
            steps(n).each(|_| {
                ring.full.at(at.stage()).wait(at.parity()); // BUG: no arrival if n is 1
                ring.look(at.stage());
                give_back(ring.empty.at(at.stage()));
                at.advance();
            });
        });
    })?;
    Ok(Case {
        kernel,
        line: SOURCE.marked(),
        trial: Trial::of(1).number(1).buffer(BYTES),
    })
}

/// With work, the compute role waits for data before it comes to the barrier.
/// Without, nothing holds it: it arrives twice for one meeting.
fn empty_tile(form: Form) -> Built {
    let kernel = Kernel::build("empty_tile", &Target::default(), |k| {
        let tiles = k.param::<u32>("tiles");
        let epilogue = k.named_barrier("epilogue");
        k.role("load")
            .body(|| steps(tiles).each(|_| epilogue.sync(64)));
        k.role("compute").body(|| {
            steps(tiles).each(|_| match form {
                Form::Broken => epilogue.arrive(64), // BUG: for the next meeting too
                Form::Repaired => epilogue.sync(64),
            });
        });
    })?;
    Ok(Case {
        kernel,
        line: SOURCE.marked(),
        trial: Trial::of(1).number(3),
    })
}

/// The report was not found; this is what rule R4 says of sizes that are no
/// multiple of a step.
fn last_step(form: Form) -> Built {
    let kernel = Kernel::build("last_step", &Target::default(), |k| {
        let (columns, x) = (k.param::<u32>("columns"), k.pointer::<f32>("x"));
        let ring = Ring::new(k, "ring", 2, 1);
        k.role("load").body(|| {
            let at = ring.fills();
            let n = form.pick(columns / WORDS, columns.div_ceil(WORDS));
            elect(|| steps(n).each(|i| ring.fill(at, x, i)));
        });
        k.role("math").body(|| {
            let at = ring.reads();
            steps(columns.div_ceil(WORDS)).each(|_| {
                ring.full.at(at.stage()).wait(at.parity()); // BUG: the last one never comes
                ring.look(at.stage());
                give_back(ring.empty.at(at.stage()));
                at.advance();
            });
        });
    })?;
    Ok(Case {
        kernel,
        line: SOURCE.marked(),
        trial: Trial::of(1).number(2 * WORDS + 8).buffer(3 * BYTES),
    })
}

/// Work items are dealt to the warps of the grid. In the last block some warps
/// have one item fewer, leave the loop, and are missed at the barrier that the
/// others meet at. Repaired, all warps of a block go round as often as its
/// first, and skip the work.
fn ragged_block(form: Form) -> Built {
    const WARPS: u32 = 8;
    let kernel = Kernel::build("ragged_block", &Target::default(), |k| {
        let (items, y) = (k.param::<u32>("items"), k.pointer::<f32>("y"));
        let step = k.barrier("step", 1).count(32 * WARPS).at(0u32);
        k.role("all").warps(WARPS).body(|| {
            let parity = Var::new(0u32);
            let first = cta_id() * WARPS + form.pick(warp_id(), 0u32.reg());
            range(first, items).by(grid_ctas() * WARPS).each(|i| {
                let item = i + form.pick(0u32.reg(), warp_id());
                if_(item.lt(items), || y.store(item * 32 + lane_id(), 1.0));
                step.arrive();
                step.wait(parity.get()); // BUG: not all warps of the block come
                parity.set(parity.get() ^ 1);
            });
        });
    })?;
    Ok(Case {
        kernel,
        line: SOURCE.marked(),
        trial: Trial::of(2)
            .number(2 * WARPS + 4)
            .buffer((2 * WARPS + 4) * BYTES),
    })
}
