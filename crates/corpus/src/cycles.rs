//! R17: roles do not wait for each other in a cycle.

use crate::bug::{Bug, Built, ExpectedRun, Version};
use crate::case::CorpusCase;
use crate::mark::{Source, this_file};
use crate::ring::{BYTES, Ring, WORDS, release_slot};
use crate::template::LaunchTemplate;
use warpline_ir::builder::*;
use warpline_ir::{FaultKind, Kernel, Target};

const SOURCE: Source = this_file!("cycles.rs");

pub(crate) const BUGS: &[Bug] = &[
    Bug {
        name: "tilelang-359",
        reference: "tile-ai/tilelang#359",
        title: "two consumers take turns in another order than the order of their tiles",
        rule: "R17.cycle",
        executor: ExpectedRun::Faults(&[FaultKind::Deadlock]),
        build: turn_order_against_tile_order,
    },
    Bug {
        name: "rings-in-opposite-order",
        reference: "two bounded buffers, emptied in another order than they are filled",
        title: "the producer fills ring A and then ring B, but the consumer empties B first",
        rule: "R17.cycle",
        executor: ExpectedRun::Faults(&[FaultKind::Deadlock]),
        build: rings_in_opposite_order,
    },
];

/// The report shows a deadlock of eight warps without a cause. This reconstruction is a cycle in a
/// ping-pong schedule: one slot serves two roles, the first tile is for `ping`, and the first turn is
/// for `pong`.
fn turn_order_against_tile_order(version: Version) -> Built {
    let kernel = Kernel::build("turn_order_against_tile_order", &Target::default(), |k| {
        let x = k.pointer::<f32>("x");
        let slot = k
            .tile::<f32>("slot", 1, WORDS)
            .unswizzled()
            .declare()
            .whole();
        let [for_ping, for_pong, empty, turn] =
            ["for_ping", "for_pong", "empty", "turn"].map(|b| k.barrier(b, 1).arrivals(1).at(0u32));
        k.role("load").body(|| {
            elect(|| {
                bulk_load(slot, x.address(0u32), BYTES, for_ping);
                for_ping.arrive_expect(BYTES);
                empty.wait(0u32);
                bulk_load(slot, x.address(WORDS), BYTES, for_pong);
                for_pong.arrive_expect(BYTES);
            });
        });
        k.role("ping").body(|| {
            if !version.is_repaired() {
                turn.wait(0u32); // BUG: waits for `pong`, whose tile waits for this slot
            }
            for_ping.wait(0u32);
            slot.load(0u32, lane_id());
            release_slot(empty);
            if version.is_repaired() {
                elect(|| turn.arrive());
            }
        });
        k.role("pong").body(|| {
            if version.is_repaired() {
                turn.wait(0u32);
            }
            for_pong.wait(0u32);
            slot.load(0u32, lane_id());
            if !version.is_repaired() {
                elect(|| turn.arrive());
            }
        });
    })?;
    Ok(CorpusCase {
        kernel,
        line: SOURCE.marked(),
        launch: LaunchTemplate::with_ctas(1).buffer(2 * BYTES),
    })
}

/// The producer fills `n` slots of A, then `m` slots of B. The kernel hangs if `n` exceeds the stages of
/// ring A.
fn rings_in_opposite_order(version: Version) -> Built {
    let kernel = Kernel::build("rings_in_opposite_order", &Target::default(), |k| {
        let (n, m) = (k.param::<u32>("n"), k.param::<u32>("m"));
        let (x, y) = (k.pointer::<f32>("x"), k.pointer::<f32>("y"));
        let (a, b) = (Ring::new(k, "a", 3, 1), Ring::new(k, "b", 2, 1));
        k.role("load").body(|| {
            let (cursor_a, cursor_b) = (a.producer_cursor(), b.producer_cursor());
            elect(|| {
                steps(n).each(|i| {
                    a.empty.at(cursor_a.stage()).wait(cursor_a.parity()); // BUG: A is full, B empty
                    a.load_slot(cursor_a.stage(), x, i);
                    cursor_a.advance();
                });
                steps(m).each(|i| b.fill(cursor_b, y, i));
            });
        });
        k.role("math").body(|| {
            let (cursor_a, cursor_b) = (a.consumer_cursor(), b.consumer_cursor());
            let [read_a, read_b]: [&dyn Fn(); 2] =
                [&|| steps(n).each(|_| a.read(cursor_a)), &|| {
                    steps(m).each(|_| b.read(cursor_b))
                }];
            let (first, second) = version.pick((read_b, read_a), (read_a, read_b));
            first();
            second();
        });
    })?;
    Ok(CorpusCase {
        kernel,
        line: SOURCE.marked(),
        launch: LaunchTemplate::with_ctas(1)
            .number(4)
            .number(2)
            .buffer(4 * BYTES)
            .buffer(2 * BYTES),
    })
}
