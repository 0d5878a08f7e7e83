//! Watched kernels as PTX: the text says what the kernel says, and ptxas has no advisory for it.

use crate::harness::watched;
use warpline_check::Checked;
use warpline_ir::{Kernel, Target};
use warpline_kernels::{Place, registry};
use warpline_testkit::assemble::assembled;
use warpline_watchdog::{Limits, hangs};

fn assembles(kernel: &Kernel) {
    let watched = watched(kernel, &Limits::default());
    let checked = Checked::unproved(watched.kernel, "a watchdog build");
    assembled(&checked).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn families_and_wrong_kernels() {
    for family in registry() {
        let work = family.default_work(Place::Gpu, &Target::SM_90A);
        let plan = work.and_then(|w| w.plan(&Target::SM_90A)).expect("a plan");
        plan.steps.iter().for_each(|s| assembles(&s.kernel));
    }
    for wrong in hangs::all().expect("kernels that build") {
        assembles(&wrong.kernel);
    }
}

#[test]
fn probes() {
    for probe in warpline_probes::all() {
        let plan = probe.cases[0].plan(&Target::SM_90A).expect("a plan");
        plan.steps.iter().for_each(|s| assembles(&s.kernel));
    }
}
