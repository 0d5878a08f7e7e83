//! One form of a bug: a kernel, where it goes wrong, and how to run it.

use crate::mark::Line;
use crate::trial::Trial;
use warpline_check::{Refusal, Report, Rule, examine};
use warpline_ir::{Arg, Fault, Kernel, Target};

/// A kernel of the corpus.
#[derive(Clone, Debug)]
pub struct Case {
    /// The kernel.
    pub kernel: Kernel,
    /// Where the broken form must be refused.
    pub line: Line,
    /// How it can be run.
    pub trial: Trial,
}

/// What a launch must keep to: tensor maps get base and strides from it.
const LAUNCH: Rule = Rule {
    code: "R13.launch",
    holds: "base, extents and strides of a tensor map are what the hardware takes",
};

impl Case {
    /// What the checker says of the kernel, and of its launch.
    pub fn examine(&self, target: &Target) -> Report {
        let mut report = examine(&self.kernel, target);
        report.refusals.extend(self.refused_launch());
        report
    }

    /// The refusal of a tensor map that the launch passes.
    fn refused_launch(&self) -> Option<Refusal> {
        let launch = self.trial.launch(&mut |_| 1 << 20);
        let params = self.kernel.params.iter().zip(&launch.args);
        let refused = params.filter_map(|(param, arg)| match arg {
            Arg::TensorMap(map) if map.decl.broken_rule().is_none() => {
                map.check().err().map(|fault| (param, fault))
            }
            _ => None,
        });
        let (param, Fault { text, .. }) = { refused }.next()?;
        Some(Refusal {
            rule: LAUNCH,
            text: format!("tensor map {}: {text}", param.name),
            role: None,
            at: self.kernel.locs.author(param.loc),
            stack: self.kernel.locs.stack(param.loc).to_vec(),
            undecided: false,
            others: Vec::new(),
            help: None,
            trace: Vec::new(),
            witness: None,
        })
    }
}
