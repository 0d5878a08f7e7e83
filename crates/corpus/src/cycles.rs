//! R17: roles do not wait for each other in a circle.

use crate::bug::{Bug, Built, Executor, Form};
use crate::case::Case;
use crate::kit::{BYTES, Ring, WORDS, give_back};
use crate::mark::{Source, this_file};
use crate::trial::Trial;
use warpline_ir::build::*;
use warpline_ir::{FaultKind, Kernel, Target};

const SOURCE: Source = this_file!("cycles.rs");

pub(crate) const BUGS: &[Bug] = &[
    Bug {
        name: "tilelang-359",
        reference: "tile-ai/tilelang#359",
        title: "two roles take turns in another order than the one their tiles come in",
        rule: "R17.cycle",
        executor: Executor::Faults(&[FaultKind::Deadlock]),
        build: turn_and_slot,
    },
    Bug {
        name: "rings-in-opposite-order",
        reference: "bounded buffers, emptied in another order than they are filled",
        title: "a loader fills ring A and then B, its consumer takes from B first",
        rule: "R17.cycle",
        executor: Executor::Faults(&[FaultKind::Deadlock]),
        build: opposite_order,
    },
];

/// The report has a deadlock of eight warps and no cause; this is the circle
/// that rule R17 names: ping-pong over a ring. One slot serves two roles, the
/// first tile is for `ping`, and the first turn for `pong`.
fn turn_and_slot(form: Form) -> Built {
    let kernel = Kernel::build("turn_and_slot", &Target::default(), |k| {
        let x = k.pointer::<f32>("x");
        let slot = k.tile::<f32>("slot", 1, WORDS).plain().declare().whole();
        let [for_ping, for_pong, empty, turn] =
            ["for_ping", "for_pong", "empty", "turn"].map(|b| k.barrier(b, 1).count(1).at(0u32));
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
            if !form.is_repaired() {
                turn.wait(0u32); // BUG: for pong, whose tile waits for this slot
            }
            for_ping.wait(0u32);
            slot.load(0u32, lane_id());
            give_back(empty);
            if form.is_repaired() {
                elect(|| turn.arrive());
            }
        });
        k.role("pong").body(|| {
            if form.is_repaired() {
                turn.wait(0u32);
            }
            for_pong.wait(0u32);
            slot.load(0u32, lane_id());
            if !form.is_repaired() {
                elect(|| turn.arrive());
            }
        });
    })?;
    Ok(Case {
        kernel,
        line: SOURCE.marked(),
        trial: Trial::of(1).buffer(2 * BYTES),
    })
}

/// A has `n` slots' worth of data, B has `m`. As long as `n` is no more than
/// ring A has slots, all goes well.
fn opposite_order(form: Form) -> Built {
    let kernel = Kernel::build("opposite_order", &Target::default(), |k| {
        let (n, m) = (k.param::<u32>("n"), k.param::<u32>("m"));
        let (x, y) = (k.pointer::<f32>("x"), k.pointer::<f32>("y"));
        let (a, b) = (Ring::new(k, "a", 3, 1), Ring::new(k, "b", 2, 1));
        k.role("load").body(|| {
            let (at_a, at_b) = (a.fills(), b.fills());
            elect(|| {
                steps(n).each(|i| {
                    a.empty.at(at_a.stage()).wait(at_a.parity()); // BUG: A is full, B empty
                    a.bring(at_a.stage(), x, i);
                    at_a.advance();
                });
                steps(m).each(|i| b.fill(at_b, y, i));
            });
        });
        k.role("math").body(|| {
            let (at_a, at_b) = (a.reads(), b.reads());
            let [take_a, take_b]: [&dyn Fn(); 2] = [&|| steps(n).each(|_| a.read(at_a)), &|| {
                steps(m).each(|_| b.read(at_b))
            }];
            let (first, second) = form.pick((take_b, take_a), (take_a, take_b));
            first();
            second();
        });
    })?;
    Ok(Case {
        kernel,
        line: SOURCE.marked(),
        trial: Trial::of(1)
            .number(4)
            .number(2)
            .buffer(4 * BYTES)
            .buffer(2 * BYTES),
    })
}
