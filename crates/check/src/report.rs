//! The report of the checker about one kernel.

use crate::assumption::Assumption;
use crate::diagnostic::Diagnostic;
use std::time::Duration;

/// The result of a check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// The kernel's name.
    pub kernel: String,
    /// The program hash; empty if the kernel uses an undeclared id.
    pub hash: String,
    /// Breaches and undecided points; empty if the kernel is proved.
    pub diagnostics: Vec<Diagnostic>,
    /// The assumptions of the proof.
    pub assumptions: Vec<Assumption>,
    /// The states of the protocol that the search reached, up to the fixed point.
    pub states: u64,
    /// The steps of warps in that search.
    pub steps: u64,
    /// The duration of the check.
    pub time: Duration,
}

/// The verdict of a check.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Verdict {
    /// Every rule holds, for every schedule and every trip count.
    Proved,
    /// A rule is broken: a counterexample was found.
    Refuted,
    /// No breach was found, but not every rule could be decided.
    Undecided,
}

impl Verdict {
    /// Returns the verdict as a word.
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Proved => "proved",
            Verdict::Refuted => "refuted",
            Verdict::Undecided => "undecided",
        }
    }
}

impl Report {
    /// Returns the verdict.
    pub fn verdict(&self) -> Verdict {
        if self.diagnostics.iter().any(|r| !r.undecided) {
            Verdict::Refuted
        } else if self.diagnostics.is_empty() {
            Verdict::Proved
        } else {
            Verdict::Undecided
        }
    }
}
