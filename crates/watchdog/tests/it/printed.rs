//! Watched kernels as PTX: the translation check passes, and ptxas assembles them.

use crate::harness::watched;
use warpline_check::Checked;
use warpline_ir::{Kernel, Target};
use warpline_kernels::{DeviceKind, registry};
use warpline_testkit::assemble::{assembles_with_spills, printed};
use warpline_watchdog::{TimeLimits, hangs};

fn assert_assembles(kernel: &Kernel) {
    let watched = watched(kernel, &TimeLimits::default());
    let checked = Checked::unproved(watched.kernel, "a watchdog build");
    // The watchdog may spill: roles that load have as few as 24 registers.
    let assembled = printed(&checked).and_then(|ptx| assembles_with_spills(&ptx));
    assembled.unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn families_and_hanging_kernels_assemble() {
    for family in registry() {
        let work = family.default_workload(DeviceKind::Gpu, &Target::SM_90A);
        let plan = work.and_then(|w| w.plan(&Target::SM_90A)).expect("a plan");
        plan.steps.iter().for_each(|s| assert_assembles(&s.kernel));
    }
    for hanging in hangs::all().expect("kernels that build") {
        assert_assembles(&hanging.kernel);
    }
}

#[test]
fn probes_assemble() {
    for probe in warpline_probes::all() {
        let plan = probe.cases[0].plan(&Target::SM_90A).expect("a plan");
        plan.steps.iter().for_each(|s| assert_assembles(&s.kernel));
    }
}
