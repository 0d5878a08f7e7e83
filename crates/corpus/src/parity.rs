//! R3: a wait passes the parity of the phase that it waits for.

use crate::bug::{Bug, Built, ExpectedRun, Version};
use crate::case::CorpusCase;
use crate::mark::{Source, this_file};
use crate::ring::{BYTES, Cursor, Ring, WORDS, release_slot};
use crate::template::LaunchTemplate;
use warpline_ir::builder::*;
use warpline_ir::{FaultKind, Kernel, Target};

const SOURCE: Source = this_file!("parity.rs");

pub(crate) const BUGS: &[Bug] = &[
    Bug {
        name: "tilelang-3087",
        reference: "tile-ai/tilelang#3087",
        title: "the mbarrier completes a phase in every iteration, but the producer waits with a ring's parity, which flips once per round",
        rule: "R3.parity",
        executor: ExpectedRun::Faults(&[FaultKind::Race, FaultKind::Deadlock]),
        build: ring_parity_of_single_barrier,
    },
    Bug {
        name: "tilelang-2674",
        reference: "tile-ai/tilelang#2674",
        title: "stage and parity restart with every tile of a persistent loop",
        rule: "R3.parity",
        executor: ExpectedRun::Faults(&[FaultKind::Race, FaultKind::Deadlock]),
        build: parity_restarts_per_tile,
    },
    Bug {
        name: "flash-attention-2258",
        reference: "Dao-AILab/flash-attention#2258",
        title: "the first wait of a producer does not pass",
        rule: "R3.parity",
        executor: ExpectedRun::Faults(&[FaultKind::Deadlock]),
        build: first_wait_blocks,
    },
    Bug {
        name: "point-flags",
        reference: "a port of multi-scale deformable attention",
        title: "a flag per point marks it as computed, but no flag marks it as read",
        rule: "R3.order",
        executor: ExpectedRun::Faults(&[FaultKind::Race, FaultKind::Deadlock]),
        build: point_flags,
    },
];

/// Three stages share one mbarrier `used`, which completes in every iteration. The parity of a ring
/// of three, `(i / 3 + 1) % 2`, names an old phase, so the wait passes at once and a stage is filled while
/// it is read.
fn ring_parity_of_single_barrier(version: Version) -> Built {
    let kernel = Kernel::build("ring_parity_of_single_barrier", &Target::default(), |k| {
        let (n, x) = (k.param::<u32>("n"), k.pointer::<f32>("x"));
        let slots = k
            .tile::<f32>("slots", 1, WORDS)
            .unswizzled()
            .stages(3)
            .declare();
        let full = k.barrier("full", 3).arrivals(1);
        let used = k.barrier("used", 1).arrivals(1).at(0u32);
        k.role("load").body(|| {
            let cursor = Cursor::new(3, 0);
            elect(|| {
                steps(n).each(|i| {
                    let (slot, full) = (slots.stage(cursor.stage()), full.at(cursor.stage()));
                    let before = version.pick(i / 3, i) + 1;
                    used.wait(before % 2); // BUG: `used` has a phase for every iteration
                    bulk_load(slot, x.address(i * WORDS), BYTES, full);
                    full.arrive_expect(BYTES);
                    cursor.advance();
                });
            });
        });
        k.role("math").body(|| {
            let cursor = Cursor::new(3, 0);
            steps(n).each(|_| {
                full.at(cursor.stage()).wait(cursor.parity());
                slots.stage(cursor.stage()).load(0u32, lane_id());
                release_slot(used);
                cursor.advance();
            });
        });
    })?;
    Ok(CorpusCase {
        kernel,
        line: SOURCE.marked(),
        launch: LaunchTemplate::with_ctas(1).number(7).buffer(7 * BYTES),
    })
}

/// The broken version is correct only if the k-tiles of a tile are a multiple of twice the stages, or
/// if each CTA has one tile.
fn parity_restarts_per_tile(version: Version) -> Built {
    let kernel = Kernel::build("parity_restarts_per_tile", &Target::default(), |k| {
        let (tiles, n) = (k.param::<u32>("tiles"), k.param::<u32>("n"));
        let x = k.pointer::<f32>("x");
        let ring = Ring::new(k, "ring", 2, 1);
        k.role("load").body(|| {
            let cursor = ring.producer_cursor();
            elect(|| {
                steps(tiles).each(|_| {
                    if !version.is_repaired() {
                        cursor.restart(1);
                    }
                    steps(n).each(|i| {
                        ring.empty.at(cursor.stage()).wait(cursor.parity()); // BUG: the parity of the first tile
                        ring.load_slot(cursor.stage(), x, i);
                        cursor.advance();
                    });
                });
            });
        });
        k.role("math").body(|| {
            let cursor = ring.consumer_cursor();
            steps(tiles).each(|_| {
                if !version.is_repaired() {
                    cursor.restart(0);
                }
                steps(n).each(|_| ring.read(cursor));
            });
        });
    })?;
    Ok(CorpusCase {
        kernel,
        line: SOURCE.marked(),
        launch: LaunchTemplate::with_ctas(1)
            .number(2)
            .number(1)
            .buffer(BYTES),
    })
}

/// A reconstruction after rule R3, without the code of the report. All slots are empty at the start,
/// but no phase has completed: the producer must begin with the parity of the phase before the first.
fn first_wait_blocks(version: Version) -> Built {
    let kernel = Kernel::build("first_wait_blocks", &Target::default(), |k| {
        let (n, x) = (k.param::<u32>("n"), k.pointer::<f32>("x"));
        let ring = Ring::new(k, "ring", 2, 1);
        k.role("load").body(|| {
            let cursor = version.pick(ring.consumer_cursor(), ring.producer_cursor());
            elect(|| {
                steps(n).each(|i| {
                    ring.empty.at(cursor.stage()).wait(cursor.parity()); // BUG: waits for phase 0
                    ring.load_slot(cursor.stage(), x, i);
                    cursor.advance();
                });
            });
        });
        k.role("math").body(|| {
            let cursor = ring.consumer_cursor();
            steps(n).each(|_| ring.read(cursor));
        });
    })?;
    Ok(CorpusCase {
        kernel,
        line: SOURCE.marked(),
        launch: LaunchTemplate::with_ctas(1).number(5).buffer(5 * BYTES),
    })
}

/// Producers set a flag for every point instead of committing a slot, and continue with the next
/// query. No wait limits their progress: they overwrite a record that is still read, and set its flag
/// twice before a consumer waits. The consumer then waits for an old phase. The repaired version has
/// a second flag per point that marks it as read: a ring of one slot per point.
fn point_flags(version: Version) -> Built {
    const POINTS: u32 = 4;
    let kernel = Kernel::build("point_flags", &Target::default(), |k| {
        let (queries, y) = (k.param::<u32>("queries"), k.pointer::<f32>("y"));
        let records = k
            .tile::<f32>("records", 1, WORDS)
            .unswizzled()
            .stages(POINTS);
        let records = records.declare();
        let done = k.barrier("done", POINTS).arrivals(1);
        let read = k.barrier("read", POINTS).arrivals(1);
        k.role("produce").body(|| {
            steps(queries).each(|i| {
                for point in 0..POINTS {
                    if version.is_repaired() {
                        read.at(point).wait((i + 1) % 2);
                    }
                    records.stage(point).store(0u32, lane_id(), 1.0); // BUG: it may still be read
                    warp_sync();
                    elect_lane(|| done.at(point).arrive());
                }
            });
        });
        k.role("gather").body(|| {
            steps(queries).each(|i| {
                for point in 0..POINTS {
                    done.at(point).wait(i % 2);
                    let x = records.stage(point).load(0u32, lane_id());
                    y.store((i * POINTS + point) * WORDS + lane_id(), x);
                    if version.is_repaired() {
                        warp_sync();
                        elect_lane(|| read.at(point).arrive());
                    }
                }
            });
        });
    })?;
    Ok(CorpusCase {
        kernel,
        line: SOURCE.marked(),
        launch: LaunchTemplate::with_ctas(1)
            .number(5)
            .buffer(5 * POINTS * BYTES),
    })
}
