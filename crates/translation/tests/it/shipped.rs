//! The PTX of what ships says what its programs say.

use std::collections::HashSet;
use warpline_check::Checked;
use warpline_ir::{Kernel, Target};
use warpline_kernels::{AnyWork, registry};
use warpline_translation::verify;
use warpline_watchdog::{Limits, watch};

const TARGET: Target = Target::SM_90A;

/// Prints kernels and reads them again, each program once.
#[derive(Default)]
struct Kernels {
    seen: HashSet<String>,
}

impl Kernels {
    fn work(&mut self, work: &dyn AnyWork) {
        let at = format!("{} {} {}", work.family(), work.problem(), work.config());
        for step in work
            .plan(&TARGET)
            .unwrap_or_else(|e| panic!("{at}: {e}"))
            .steps
        {
            self.kernel(step.into_kernel(), &at);
        }
    }

    fn kernel(&mut self, kernel: Kernel, at: &str) {
        if !self.seen.insert(kernel.text_hash()) {
            return;
        }
        // What the checker says of it is tested elsewhere.
        let kernel = Checked::unproved(kernel, "read again");
        let ptx = warpline_ptx::print(&kernel, &TARGET).unwrap_or_else(|e| panic!("{at}: {e}"));
        let counts = verify(&kernel, &ptx.text).unwrap_or_else(|e| panic!("{at}: {e}"));
        assert!(counts.total() > kernel.params.len());
    }

    /// The same as it runs under the watchdog.
    fn watched(&mut self, kernel: &Kernel, at: &str) {
        let watched = watch(kernel, &Limits::default()).unwrap_or_else(|e| panic!("{at}: {e}"));
        self.kernel(watched.kernel, at);
    }
}

/// Is all of it asked for (`cargo xtask test --full`)?
fn full() -> bool {
    std::env::var_os("WARPLINE_FULL").is_some()
}

#[test]
fn families() {
    for family in registry() {
        let mut kernels = Kernels::default();
        let mut forms = HashSet::new();
        for work in family.cases(&TARGET).into_iter().flatten() {
            // Without all of it, each form once.
            let config = work.config();
            if full() || forms.insert(config.get("form").map(ToString::to_string)) {
                kernels.work(work.as_ref());
            }
        }
        if full() {
            for suite in family.suites() {
                let measured = family.bench(suite, &TARGET).expect("legal");
                measured.iter().for_each(|w| kernels.work(w.as_ref()));
            }
        }
        assert!(!kernels.seen.is_empty());
    }
}

#[test]
fn probes() {
    let mut kernels = Kernels::default();
    for probe in warpline_probes::all() {
        for work in &probe.cases[..if full() { probe.cases.len() } else { 1 }] {
            kernels.work(work.as_ref());
        }
    }
    assert!(kernels.seen.len() >= warpline_probes::all().len() - 1);
}

#[test]
fn watchdog_builds() {
    let mut kernels = Kernels::default();
    for probe in warpline_probes::all() {
        let plan = probe.cases[0].plan(&TARGET).expect("a plan");
        for step in &plan.steps {
            kernels.watched(&step.kernel, probe.name);
        }
    }
    assert!(!kernels.seen.is_empty());
}
