//! The reports on both versions of a bug, compared with the expectation.

use crate::bug::Bug;
use crate::mark::MarkedLine;
use std::fmt;
use warpline_check::{Diagnostic, Report, Verdict};
use warpline_ir::{BuildErrors, Target};

/// The reports on both versions of a bug.
#[derive(Clone, Debug)]
pub struct BugResult {
    /// The bug.
    pub bug: Bug,
    /// The line at which the broken version must be refuted.
    pub line: MarkedLine,
    /// The report on the broken version.
    pub broken: Report,
    /// The report on the repaired version.
    pub repaired: Report,
}

/// Checks both versions of a bug.
pub fn verify(bug: &Bug, target: &Target) -> Result<BugResult, BuildErrors> {
    let broken = bug.broken()?;
    Ok(BugResult {
        bug: *bug,
        line: broken.line,
        broken: broken.examine(target),
        repaired: bug.repaired()?.examine(target),
    })
}

impl BugResult {
    /// Returns the diagnostic of the broken version with the expected rule and line.
    pub fn hit(&self) -> Option<&Diagnostic> {
        self.broken.diagnostics.iter().find(|r| {
            let labels = r.labels.iter().map(|label| label.at);
            let mut frames = labels.chain([r.at]).flatten();
            !r.undecided && r.code() == self.bug.rule && frames.any(|at| self.line.contains(at))
        })
    }

    /// Returns whether the broken version is refuted as expected, and the repaired one is proved.
    pub fn is_expected(&self) -> bool {
        self.hit().is_some() && self.repaired.verdict() == Verdict::Proved
    }
}

impl fmt::Display for BugResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Bug { name, rule, .. } = self.bug;
        write!(f, "{name}: ")?;
        match self.hit() {
            Some(diagnostic) => write!(f, "{diagnostic}")?,
            None => {
                write!(f, "not refuted by {rule} at {}, but ", self.line)?;
                format_report(f, &self.broken)?;
            }
        }
        if self.repaired.verdict() != Verdict::Proved {
            f.write_str("; the repaired version is ")?;
            format_report(f, &self.repaired)?;
        }
        Ok(())
    }
}

/// Formats the verdict of a report and its diagnostics.
fn format_report(f: &mut fmt::Formatter<'_>, report: &Report) -> fmt::Result {
    f.write_str(report.verdict().name())?;
    for diagnostic in &report.diagnostics {
        write!(f, "; {diagnostic}")?;
    }
    Ok(())
}
