//! R11: a barrier is used when its init can be seen.

use crate::bug::{Bug, Built, Executor, Form};
use crate::case::Case;
use crate::mark::{Source, this_file};
use crate::trial::Trial;
use warpline_ir::build::*;
use warpline_ir::{FaultKind, Kernel, Target};

const SOURCE: Source = this_file!("init.rs");

pub(crate) const BUGS: &[Bug] = &[Bug {
    name: "fuser-1552",
    reference: "NVIDIA/Fuser#1552",
    title: "threads arrive at an mbarrier that is just being made",
    rule: "R11.init",
    executor: Executor::Faults(&[FaultKind::Barrier]),
    build: early_arrival,
}];

/// One thread makes the barrier, and nobody waits for that.
fn early_arrival(form: Form) -> Built {
    let kernel = Kernel::build("early_arrival", &Target::default(), |k| {
        let done = k.barrier("done", 1).at(0u32);
        k.role("all").warps(4).body(|| {
            elect(|| {
                done.init(128);
                fence_mbarrier_init();
            });
            if form.is_repaired() {
                cta_sync();
            }
            done.arrive(); // BUG: it may not be a barrier yet
            done.wait(0u32);
        });
    })?;
    Ok(Case {
        kernel,
        line: SOURCE.marked(),
        trial: Trial::of(1),
    })
}
