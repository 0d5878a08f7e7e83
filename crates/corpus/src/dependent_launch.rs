//! R16: a dependent launch waits before it accesses global memory.

use crate::bug::{Bug, Built, ExpectedRun, Version};
use crate::case::CorpusCase;
use crate::mark::{Source, this_file};
use crate::ring::{BYTES, Ring, WORDS, release_slot};
use crate::template::LaunchTemplate;
use warpline_ir::builder::*;
use warpline_ir::{Kernel, Target};

const SOURCE: Source = this_file!("dependent_launch.rs");

pub(crate) const BUGS: &[Bug] = &[Bug {
    name: "cutlass-2760",
    reference: "NVIDIA/cutlass#2760",
    title: "the producer of a dependent launch does not wait for the preceding grid",
    rule: "R16.wait",
    executor: ExpectedRun::Clean("the executor runs one grid at a time"),
    build: load_before_dependency_wait,
}];

/// The role that writes the results waits. The role that loads does not, and may read bytes that the
/// preceding grid has not written yet.
fn load_before_dependency_wait(version: Version) -> Built {
    let kernel = Kernel::build("load_before_dependency_wait", &Target::default(), |k| {
        let n = k.param::<u32>("n");
        let (x, y) = (k.pointer::<f32>("x"), k.pointer::<f32>("y"));
        let ring = Ring::new(k, "ring", 2, 1);
        k.role("load").body(|| {
            let cursor = ring.producer_cursor();
            if version.is_repaired() {
                wait_prerequisites();
            }
            elect(|| {
                steps(n).each(|i| {
                    let (slot, full) = (
                        ring.slots.stage(cursor.stage()),
                        ring.full.at(cursor.stage()),
                    );
                    ring.empty.at(cursor.stage()).wait(cursor.parity());
                    bulk_load(slot, x.address(i * WORDS), BYTES, full); // BUG: `x` may be incomplete
                    full.arrive_expect(BYTES);
                    cursor.advance();
                });
            });
        });
        k.role("math").body(|| {
            let cursor = ring.consumer_cursor();
            wait_prerequisites();
            steps(n).each(|i| {
                ring.full.at(cursor.stage()).wait(cursor.parity());
                let value = ring.slots.stage(cursor.stage()).load(0u32, lane_id());
                release_slot(ring.empty.at(cursor.stage()));
                y.store(i * WORDS + lane_id(), value);
                cursor.advance();
            });
        });
    })?;
    Ok(CorpusCase {
        kernel,
        line: SOURCE.marked(),
        launch: LaunchTemplate::with_ctas(1)
            .number(3)
            .buffer(3 * BYTES)
            .buffer(3 * BYTES),
    })
}
