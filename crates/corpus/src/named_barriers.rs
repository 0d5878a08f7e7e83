//! R10: a named barrier is reused only after its previous use is complete.

use crate::bug::{Bug, Built, ExpectedRun, Version};
use crate::case::CorpusCase;
use crate::mark::{Source, this_file};
use crate::ring::WORDS;
use crate::template::LaunchTemplate;
use warpline_ir::builder::*;
use warpline_ir::{FaultKind, Kernel, Target};

const SOURCE: Source = this_file!("named_barriers.rs");

pub(crate) const BUGS: &[Bug] = &[Bug {
    name: "weft-recycling",
    reference: "Weft (PLDI 2015), safe recycling of barriers",
    title: "two pairs of warps use one named barrier without an order between them",
    rule: "R10.recycle",
    executor: ExpectedRun::Faults(&[FaultKind::Race, FaultKind::NeverWritten]),
    build: barrier_of_two_pairs,
}];

/// In each pair one warp writes and arrives, and one waits and reads. With one barrier for
/// both pairs, a reader may continue after the arrival of the other pair's writer.
fn barrier_of_two_pairs(version: Version) -> Built {
    let kernel = Kernel::build("barrier_of_two_pairs", &Target::default(), |k| {
        let first = k.named_barrier("first");
        let second = version.pick(first, k.named_barrier("second"));
        for (pair, barrier) in [("a", first), ("b", second)] {
            let slot = k.tile::<f32>(pair, 1, WORDS).unswizzled().declare().whole();
            k.role(&format!("write_{pair}")).body(|| {
                slot.store(0u32, lane_id(), 1.0);
                barrier.arrive(64); // BUG: may count for the other pair
            });
            k.role(&format!("read_{pair}")).body(|| {
                barrier.sync(64);
                slot.load(0u32, lane_id());
            });
        }
    })?;
    Ok(CorpusCase {
        kernel,
        line: SOURCE.marked(),
        launch: LaunchTemplate::with_ctas(1),
    })
}
