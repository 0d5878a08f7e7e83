//! R16: a dependent launch waits before it accesses global memory.

use crate::bug::{Bug, Built, ExpectedRun, Version};
use crate::case::CorpusCase;
use crate::kit::{BYTES, Ring, WORDS, release_slot};
use crate::mark::{Source, this_file};
use crate::template::LaunchTemplate;
use warpline_ir::builder::*;
use warpline_ir::{Kernel, Target};

const SOURCE: Source = this_file!("launch.rs");

pub(crate) const BUGS: &[Bug] = &[Bug {
    name: "cutlass-2760",
    reference: "NVIDIA/cutlass#2760",
    title: "the producer of a dependent launch does not wait for the preceding grid",
    rule: "R16.wait",
    executor: ExpectedRun::Clean("the executor runs one grid at a time"),
    build: early_grid,
}];

/// The role that writes the results waits. The role that loads does not, and may read bytes that the
/// preceding grid has not written yet.
fn early_grid(version: Version) -> Built {
    let kernel = Kernel::build("early_grid", &Target::default(), |k| {
        let n = k.param::<u32>("n");
        let (x, y) = (k.pointer::<f32>("x"), k.pointer::<f32>("y"));
        let ring = Ring::new(k, "ring", 2, 1);
        k.role("load").body(|| {
            let at = ring.producer_cursor();
            if version.is_repaired() {
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
            let at = ring.consumer_cursor();
            wait_prerequisites();
            steps(n).each(|i| {
                ring.full.at(at.stage()).wait(at.parity());
                let value = ring.slots.stage(at.stage()).load(0u32, lane_id());
                release_slot(ring.empty.at(at.stage()));
                y.store(i * WORDS + lane_id(), value);
                at.advance();
            });
        });
    })?;
    Ok(CorpusCase {
        kernel,
        line: SOURCE.marked(),
        launch: LaunchTemplate::of(1)
            .number(3)
            .buffer(3 * BYTES)
            .buffer(3 * BYTES),
    })
}
