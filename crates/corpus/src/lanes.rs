//! R15: lanes that wait by themselves synchronize with their warp.

use crate::bug::{Bug, Built, ExpectedRun, Version};
use crate::case::CorpusCase;
use crate::mark::{Source, this_file};
use crate::ring::{BYTES, Ring};
use crate::template::LaunchTemplate;
use warpline_ir::builder::*;
use warpline_ir::{Kernel, Target};

const SOURCE: Source = this_file!("lanes.rs");

pub(crate) const BUGS: &[Bug] = &[Bug {
    name: "cutlass-3654",
    reference: "NVIDIA/cutlass#3654",
    title: "all lanes wait for a slot, and one lane fills it without waiting for the other lanes",
    rule: "R15.late",
    executor: ExpectedRun::Clean("in the executor the lanes of a warp pass a wait together"),
    build: late_lane,
}];

/// A lane that reaches its wait late finds a later phase: the slot has been filled, read and released
/// in the meantime.
fn late_lane(version: Version) -> Built {
    let kernel = Kernel::build("late_lane", &Target::default(), |k| {
        let (n, x) = (k.param::<u32>("n"), k.pointer::<f32>("x"));
        let ring = Ring::new(k, "q", 1, 1);
        k.role("load").body(|| {
            let cursor = ring.producer_cursor();
            steps(n).each(|i| {
                ring.empty.at(0u32).wait(cursor.parity()); // BUG: lanes wait, but not for each other
                if version.is_repaired() {
                    warp_sync();
                }
                elect(|| ring.load_slot(cursor.stage(), x, i));
                cursor.advance();
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
        launch: LaunchTemplate::with_ctas(1).number(4).buffer(4 * BYTES),
    })
}
