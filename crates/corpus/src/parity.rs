//! R3: a wait names the phase it means.

use crate::bug::{Bug, Built, Executor, Form};
use crate::case::Case;
use crate::kit::{BYTES, Cursor, Ring, WORDS, give_back};
use crate::mark::{Source, this_file};
use crate::trial::Trial;
use warpline_ir::build::*;
use warpline_ir::{FaultKind, Kernel, Target};

const SOURCE: Source = this_file!("parity.rs");

pub(crate) const BUGS: &[Bug] = &[
    Bug {
        name: "tilelang-3087",
        reference: "tile-ai/tilelang#3087",
        title: "a barrier that flips every round is waited for with the parity of a ring",
        rule: "R3.parity",
        executor: Executor::Faults(&[FaultKind::Race, FaultKind::Deadlock]),
        build: ring_parity,
    },
    Bug {
        name: "tilelang-2674",
        reference: "tile-ai/tilelang#2674",
        title: "stage and parity start again with every tile of a persistent loop",
        rule: "R3.parity",
        executor: Executor::Faults(&[FaultKind::Race, FaultKind::Deadlock]),
        build: forgotten_parity,
    },
    Bug {
        name: "flash-attention-2258",
        reference: "Dao-AILab/flash-attention#2258",
        title: "the first wait of a producer does not pass",
        rule: "R3.parity",
        executor: Executor::Faults(&[FaultKind::Deadlock]),
        build: first_wait,
    },
    Bug {
        name: "point-flags",
        reference: "a port of multi-scale deformable attention",
        title: "a flag for every point says that it was worked out, and none that it was read",
        rule: "R3.order",
        executor: Executor::Faults(&[FaultKind::Race, FaultKind::Deadlock]),
        build: point_flags,
    },
];

/// Three stages, but one barrier that says of each round that it was used. The
/// parity of a ring of three, `k / 3 % 2`, names a phase that is long over, so
/// that the wait passes at once and a stage is filled while it is read.
fn ring_parity(form: Form) -> Built {
    let kernel = Kernel::build("ring_parity", &Target::default(), |k| {
        let (n, x) = (k.param::<u32>("n"), k.pointer::<f32>("x"));
        let slots = k.tile::<f32>("slots", 1, WORDS).plain().stages(3).declare();
        let full = k.barrier("full", 3).count(1);
        let used = k.barrier("used", 1).count(1).at(0u32);
        k.role("load").body(|| {
            let at = Cursor::new(3, 0);
            elect(|| {
                steps(n).each(|i| {
                    let (slot, full) = (slots.stage(at.stage()), full.at(at.stage()));
                    let before = form.pick(i / 3, i) + 1;
                    used.wait(before % 2); // BUG: `used` has a phase for every round
                    bulk_load(slot, x.address(i * WORDS), BYTES, full);
                    full.arrive_expect(BYTES);
                    at.advance();
                });
            });
        });
        k.role("math").body(|| {
            let at = Cursor::new(3, 0);
            steps(n).each(|_| {
                full.at(at.stage()).wait(at.parity());
                slots.stage(at.stage()).load(0u32, lane_id());
                give_back(used);
                at.advance();
            });
        });
    })?;
    Ok(Case {
        kernel,
        line: SOURCE.marked(),
        trial: Trial::of(1).number(7).buffer(7 * BYTES),
    })
}

/// Right as long as the steps of a tile are a multiple of twice the stages, or
/// each CTA has one tile.
fn forgotten_parity(form: Form) -> Built {
    let kernel = Kernel::build("forgotten_parity", &Target::default(), |k| {
        let (tiles, n) = (k.param::<u32>("tiles"), k.param::<u32>("n"));
        let x = k.pointer::<f32>("x");
        let ring = Ring::new(k, "ring", 2, 1);
        k.role("load").body(|| {
            let at = ring.fills();
            elect(|| {
                steps(tiles).each(|_| {
                    if !form.is_repaired() {
                        at.restart(1);
                    }
                    steps(n).each(|i| {
                        ring.empty.at(at.stage()).wait(at.parity()); // BUG: of the first tile
                        ring.bring(at.stage(), x, i);
                        at.advance();
                    });
                });
            });
        });
        k.role("math").body(|| {
            let at = ring.reads();
            steps(tiles).each(|_| {
                if !form.is_repaired() {
                    at.restart(0);
                }
                steps(n).each(|_| ring.read(at));
            });
        });
    })?;
    Ok(Case {
        kernel,
        line: SOURCE.marked(),
        trial: Trial::of(1).number(2).number(1).buffer(BYTES),
    })
}

/// The report was not found; this is what rule R3 says of producers. All slots
/// are empty at the start, and no phase says so: the producer must begin with
/// the parity of the phase before the first.
fn first_wait(form: Form) -> Built {
    let kernel = Kernel::build("first_wait", &Target::default(), |k| {
        let (n, x) = (k.param::<u32>("n"), k.pointer::<f32>("x"));
        let ring = Ring::new(k, "ring", 2, 1);
        k.role("load").body(|| {
            let at = form.pick(ring.reads(), ring.fills());
            elect(|| {
                steps(n).each(|i| {
                    ring.empty.at(at.stage()).wait(at.parity()); // BUG: waits for phase 0
                    ring.bring(at.stage(), x, i);
                    at.advance();
                });
            });
        });
        k.role("math").body(|| {
            let at = ring.reads();
            steps(n).each(|_| ring.read(at));
        });
    })?;
    Ok(Case {
        kernel,
        line: SOURCE.marked(),
        trial: Trial::of(1).number(5).buffer(5 * BYTES),
    })
}

/// Producers raise a flag for every point in place of handing on a slot, and go
/// on to the next query. Nothing holds them back: they write a record that is
/// still read, and raise its flag twice before a consumer looks, which then
/// waits for a phase that is over. Repaired, a second flag for every point says
/// that it was read: a ring of one slot for each.
fn point_flags(form: Form) -> Built {
    const POINTS: u32 = 4;
    let kernel = Kernel::build("point_flags", &Target::default(), |k| {
        let (queries, y) = (k.param::<u32>("queries"), k.pointer::<f32>("y"));
        let records = k.tile::<f32>("records", 1, WORDS).plain().stages(POINTS);
        let records = records.declare();
        let done = k.barrier("done", POINTS).count(1);
        let read = k.barrier("read", POINTS).count(1);
        k.role("produce").body(|| {
            steps(queries).each(|i| {
                for point in 0..POINTS {
                    if form.is_repaired() {
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
                    if form.is_repaired() {
                        warp_sync();
                        elect_lane(|| read.at(point).arrive());
                    }
                }
            });
        });
    })?;
    Ok(Case {
        kernel,
        line: SOURCE.marked(),
        trial: Trial::of(1).number(5).buffer(5 * POINTS * BYTES),
    })
}
