//! R15: what one lane waits for or issues is ordered with the rest of its warp.

use crate::bug::{Bug, Built, Executor, Form};
use crate::case::Case;
use crate::kit::{BYTES, Ring};
use crate::mark::{Source, this_file};
use crate::trial::Trial;
use warpline_ir::build::*;
use warpline_ir::{Kernel, Target};

const SOURCE: Source = this_file!("lanes.rs");

pub(crate) const BUGS: &[Bug] = &[Bug {
    name: "cutlass-3654",
    reference: "NVIDIA/cutlass#3654",
    title: "all lanes wait for a slot, and one fills it without waiting for the others",
    rule: "R15.late",
    executor: Executor::Blind("the lanes of a warp wait in one step here"),
    build: lane_left_behind,
}];

/// A lane that comes to its wait late finds the phase after the one it means:
/// the slot has been filled, read and given back in the meantime.
fn lane_left_behind(form: Form) -> Built {
    let kernel = Kernel::build("lane_left_behind", &Target::default(), |k| {
        let (n, x) = (k.param::<u32>("n"), k.pointer::<f32>("x"));
        let ring = Ring::new(k, "q", 1, 1);
        k.role("load").body(|| {
            let at = ring.fills();
            steps(n).each(|i| {
                ring.empty.at(0u32).wait(at.parity()); // BUG: lanes wait, but not for each other
                if form.is_repaired() {
                    warp_sync();
                }
                elect(|| ring.bring(at.stage(), x, i));
                at.advance();
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
        trial: Trial::of(1).number(4).buffer(4 * BYTES),
    })
}
