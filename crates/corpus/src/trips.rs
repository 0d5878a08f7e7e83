//! R4: roles agree on their trip counts.

use crate::bug::{Bug, Built, ExpectedRun, Version};
use crate::case::CorpusCase;
use crate::mark::{Source, this_file};
use crate::ring::{BYTES, Ring, WORDS, release_slot};
use crate::template::LaunchTemplate;
use warpline_ir::builder::*;
use warpline_ir::{FaultKind, Kernel, Target};

const SOURCE: Source = this_file!("trips.rs");

pub(crate) const BUGS: &[Bug] = &[
    Bug {
        name: "tilelang-2566",
        reference: "tile-ai/tilelang#2566",
        title: "for n = 1 the producer calls `expect` instead of `arrive_expect`, so no thread arrives",
        rule: "R4.trips",
        executor: ExpectedRun::Faults(&[FaultKind::Deadlock]),
        build: single_iteration,
    },
    Bug {
        name: "vllm-26026",
        reference: "vllm-project/vllm#26026",
        title: "a role without work arrives at a named barrier and arrives again in its next iteration",
        rule: "R10.recycle",
        executor: ExpectedRun::Faults(&[FaultKind::Deadlock, FaultKind::Barrier]),
        build: empty_tile,
    },
    Bug {
        name: "fast-cu-7",
        reference: "pranjalssh/fast.cu#7",
        title: "the producer rounds its trip count down, and the consumer rounds it up",
        rule: "R4.trips",
        executor: ExpectedRun::Faults(&[FaultKind::Deadlock]),
        build: partial_last_k_tile,
    },
    Bug {
        name: "ragged-block",
        reference: "a port of multi-scale deformable attention",
        title: "a CTA-wide barrier inside a grid-stride loop whose last CTA has fewer items than warps",
        rule: "R4.trips",
        executor: ExpectedRun::Faults(&[FaultKind::Deadlock]),
        build: partial_last_cta,
    },
];

/// A load loop with one iteration becomes a bulk copy without a tensor map. On that path the mbarrier
/// expects the bytes, but no thread arrives.
fn single_iteration(version: Version) -> Built {
    let kernel = Kernel::build("single_iteration", &Target::default(), |k| {
        let (n, x) = (k.param::<u32>("n"), k.pointer::<f32>("x"));
        let ring = Ring::new(k, "ring", 2, 1);
        k.role("load").body(|| {
            let cursor = ring.producer_cursor();
            elect(|| {
                steps(n).each(|i| {
                    let (slot, full) = (
                        ring.slots.stage(cursor.stage()),
                        ring.full.at(cursor.stage()),
                    );
                    ring.empty.at(cursor.stage()).wait(cursor.parity());
                    bulk_load(slot, x.address(i * WORDS), BYTES, full);
                    let arrive = || full.arrive_expect(BYTES);
                    match version {
                        Version::Broken => if_else(n.eq(1u32), || full.expect(BYTES), arrive),
                        Version::Repaired => arrive(),
                    }
                    cursor.advance();
                });
            });
        });
        k.role("math").body(|| {
            let cursor = ring.consumer_cursor();
            steps(n).each(|_| {
                ring.full.at(cursor.stage()).wait(cursor.parity()); // BUG: no arrival if n is 1
                ring.read_slot(cursor.stage());
                release_slot(ring.empty.at(cursor.stage()));
                cursor.advance();
            });
        });
    })?;
    Ok(CorpusCase {
        kernel,
        line: SOURCE.marked(),
        launch: LaunchTemplate::with_ctas(1).number(1).buffer(BYTES),
    })
}

/// With work, the compute role waits for data before it arrives at the barrier. Without work nothing
/// delays it: it arrives twice in one use of the barrier.
fn empty_tile(version: Version) -> Built {
    let kernel = Kernel::build("empty_tile", &Target::default(), |k| {
        let tiles = k.param::<u32>("tiles");
        let epilogue = k.named_barrier("epilogue");
        k.role("load")
            .body(|| steps(tiles).each(|_| epilogue.sync(64)));
        k.role("compute").body(|| {
            steps(tiles).each(|_| match version {
                Version::Broken => epilogue.arrive(64), // BUG: may arrive twice in one use
                Version::Repaired => epilogue.sync(64),
            });
        });
    })?;
    Ok(CorpusCase {
        kernel,
        line: SOURCE.marked(),
        launch: LaunchTemplate::with_ctas(1).number(3),
    })
}

/// A reconstruction after rule R4, without the code of the report: a size that is not a multiple of a
/// k-tile.
fn partial_last_k_tile(version: Version) -> Built {
    let kernel = Kernel::build("partial_last_k_tile", &Target::default(), |k| {
        let (columns, x) = (k.param::<u32>("columns"), k.pointer::<f32>("x"));
        let ring = Ring::new(k, "ring", 2, 1);
        k.role("load").body(|| {
            let cursor = ring.producer_cursor();
            let n = version.pick(columns / WORDS, columns.div_ceil(WORDS));
            elect(|| steps(n).each(|i| ring.fill(cursor, x, i)));
        });
        k.role("math").body(|| {
            let cursor = ring.consumer_cursor();
            steps(columns.div_ceil(WORDS)).each(|_| {
                ring.full.at(cursor.stage()).wait(cursor.parity()); // BUG: the last slot is never filled
                ring.read_slot(cursor.stage());
                release_slot(ring.empty.at(cursor.stage()));
                cursor.advance();
            });
        });
    })?;
    Ok(CorpusCase {
        kernel,
        line: SOURCE.marked(),
        launch: LaunchTemplate::with_ctas(1)
            .number(2 * WORDS + 8)
            .buffer(3 * BYTES),
    })
}

/// Work items go to the warps of the grid in turn. In the last CTA some warps have one item fewer and
/// leave the loop, so they do not arrive at the barrier of the others. In the repaired version all
/// warps of a CTA run as many iterations as its first warp, and skip the missing work.
fn partial_last_cta(version: Version) -> Built {
    const WARPS: u32 = 8;
    let kernel = Kernel::build("partial_last_cta", &Target::default(), |k| {
        let (items, y) = (k.param::<u32>("items"), k.pointer::<f32>("y"));
        let step = k.barrier("step", 1).arrivals(32 * WARPS).at(0u32);
        k.role("all").warps(WARPS).body(|| {
            let parity = Var::new(0u32);
            let first = cta_id() * WARPS + version.pick(warp_id(), 0u32.reg());
            range(first, items).step_by(grid_ctas() * WARPS).each(|i| {
                let item = i + version.pick(0u32.reg(), warp_id());
                if_(item.lt(items), || y.store(item * 32 + lane_id(), 1.0));
                step.arrive();
                step.wait(parity.get()); // BUG: not all warps of the CTA arrive
                parity.set(parity.get() ^ 1);
            });
        });
    })?;
    Ok(CorpusCase {
        kernel,
        line: SOURCE.marked(),
        launch: LaunchTemplate::with_ctas(2)
            .number(2 * WARPS + 4)
            .buffer((2 * WARPS + 4) * BYTES),
    })
}
