//! R10: a named barrier serves its next meeting only after the last one.

use crate::bug::{Bug, Built, Executor, Form};
use crate::case::Case;
use crate::kit::WORDS;
use crate::mark::{Source, this_file};
use crate::trial::Trial;
use warpline_ir::build::*;
use warpline_ir::{FaultKind, Kernel, Target};

const SOURCE: Source = this_file!("named.rs");

pub(crate) const BUGS: &[Bug] = &[Bug {
    name: "weft-recycling",
    reference: "Weft (PLDI 2015), safe recycling of barriers",
    title: "two pairs of warps use one named barrier, and nothing keeps them apart",
    rule: "R10.recycle",
    executor: Executor::Faults(&[FaultKind::Race, FaultKind::NeverWritten]),
    build: two_pairs,
}];

/// Each pair is one warp that writes and arrives, and one that waits and
/// reads. With one barrier for both, a reader may go on at the arrival of the
/// other pair's writer.
fn two_pairs(form: Form) -> Built {
    let kernel = Kernel::build("two_pairs", &Target::default(), |k| {
        let first = k.named_barrier("first");
        let second = form.pick(first, k.named_barrier("second"));
        for (pair, barrier) in [("a", first), ("b", second)] {
            let slot = k.tile::<f32>(pair, 1, WORDS).plain().declare().whole();
            k.role(&format!("write_{pair}")).body(|| {
                slot.store(0u32, lane_id(), 1.0);
                barrier.arrive(64); // BUG: at whose meeting?
            });
            k.role(&format!("read_{pair}")).body(|| {
                barrier.sync(64);
                slot.load(0u32, lane_id());
            });
        }
    })?;
    Ok(Case {
        kernel,
        line: SOURCE.marked(),
        trial: Trial::of(1),
    })
}
