//! R16: a grid that starts early waits before it reads.

use crate::bug::{Bug, Built, Executor, Form};
use crate::case::Case;
use crate::kit::{BYTES, Ring, WORDS, give_back};
use crate::mark::{Source, this_file};
use crate::trial::Trial;
use warpline_ir::build::*;
use warpline_ir::{Kernel, Target};

const SOURCE: Source = this_file!("launch.rs");

pub(crate) const BUGS: &[Bug] = &[Bug {
    name: "cutlass-2760",
    reference: "NVIDIA/cutlass#2760",
    title: "the loading role of a dependent launch does not wait for the grid before it",
    rule: "R16.wait",
    executor: Executor::Blind("a launch is alone here: no grid runs before it"),
    build: early_grid,
}];

/// The role that writes the results waits; the one that loads does not, and
/// may bring what the grid before has not written yet.
fn early_grid(form: Form) -> Built {
    let kernel = Kernel::build("early_grid", &Target::default(), |k| {
        let n = k.param::<u32>("n");
        let (x, y) = (k.pointer::<f32>("x"), k.pointer::<f32>("y"));
        let ring = Ring::new(k, "ring", 2, 1);
        k.role("load").body(|| {
            let at = ring.fills();
            if form.is_repaired() {
                wait_prerequisites();
            }
            elect(|| {
                steps(n).each(|i| {
                    let (slot, full) = (ring.slots.stage(at.stage()), ring.full.at(at.stage()));
                    ring.empty.at(at.stage()).wait(at.parity());
                    bulk_load(slot, x.address(i * WORDS), BYTES, full); // BUG: may be too early
                    full.arrive_expect(BYTES);
                    at.advance();
                });
            });
        });
        k.role("math").body(|| {
            let at = ring.reads();
            wait_prerequisites();
            steps(n).each(|i| {
                ring.full.at(at.stage()).wait(at.parity());
                let value = ring.slots.stage(at.stage()).load(0u32, lane_id());
                give_back(ring.empty.at(at.stage()));
                y.store(i * WORDS + lane_id(), value);
                at.advance();
            });
        });
    })?;
    Ok(Case {
        kernel,
        line: SOURCE.marked(),
        trial: Trial::of(1).number(3).buffer(3 * BYTES).buffer(3 * BYTES),
    })
}
