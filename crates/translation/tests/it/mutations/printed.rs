//! Kernels to mutate.

use warpline_check::Checked;
use warpline_ir::Target;
use warpline_kernels::{AnyWorkload, registry};

/// A kernel and its PTX.
pub(crate) struct Printed {
    pub(crate) kernel: Checked,
    pub(crate) text: String,
}

impl Printed {
    /// Prints the specialized schedule of a family, or a probe.
    pub(crate) fn new(name: &str) -> Self {
        let work = family(name).unwrap_or_else(|| probe(name));
        let plan = work.plan(&Target::SM_90A).expect("a plan");
        let step = plan.steps.into_iter().next().expect("a kernel");
        let kernel = step.into_kernel();
        let kernel = Checked::unproved(kernel, "translation test");
        let text = warpline_ptx::print(&kernel, &Target::SM_90A)
            .expect("printed")
            .text;
        Self { kernel, text }
    }
}

fn family(name: &str) -> Option<Box<dyn AnyWorkload>> {
    let family = registry().into_iter().find(|f| f.name() == name)?;
    let mut cases = family.cases(&Target::SM_90A).into_iter().flatten();
    cases.find(|w| w.config()["schedule"] == "specialized")
}

fn probe(name: &str) -> Box<dyn AnyWorkload> {
    let mut all = warpline_probes::all().into_iter();
    let probe = all.find(|p| p.name == name).expect("a family or a probe");
    probe.cases.into_iter().next().expect("a case")
}
