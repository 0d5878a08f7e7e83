//! One version of a bug: the kernel, the line of the bug and a launch.

use crate::mark::MarkedLine;
use crate::template::LaunchTemplate;
use warpline_check::codes::R13_LAUNCH;
use warpline_check::{Diagnostic, Report, examine};
use warpline_ir::{Arg, Fault, Kernel, Target};

/// A kernel of the corpus.
#[derive(Clone, Debug)]
pub struct CorpusCase {
    /// The kernel.
    pub kernel: Kernel,
    /// The line at which the checker must refute the broken version.
    pub line: MarkedLine,
    /// A launch of the kernel.
    pub launch: LaunchTemplate,
}

impl CorpusCase {
    /// Checks the kernel and its launch.
    pub fn examine(&self, target: &Target) -> Report {
        let mut report = examine(&self.kernel, target);
        report.diagnostics.extend(self.illegal_launch());
        report
    }

    /// Returns the diagnostic of an illegal tensor that the launch passes.
    fn illegal_launch(&self) -> Option<Diagnostic> {
        let launch = self.launch.instantiate(&mut |_| 1 << 20);
        let params = self.kernel.params.iter().zip(&launch.args);
        let illegal = params.filter_map(|(param, arg)| match arg {
            Arg::TensorMap(map) if map.decl.violated_rule().is_none() => {
                map.check().err().map(|fault| (param, fault))
            }
            _ => None,
        });
        let (param, Fault { text, .. }) = { illegal }.next()?;
        Some(Diagnostic {
            rule: R13_LAUNCH,
            text: format!("{}: tensor map `{}`: {text}", R13_LAUNCH.title, param.name),
            label: String::new(),
            cause: None,
            role: None,
            at: self.kernel.locs.author(param.loc),
            stack: self.kernel.locs.stack(param.loc).to_vec(),
            undecided: false,
            labels: Vec::new(),
            help: None,
            trace: Vec::new(),
            counterexample: None,
        })
    }
}
