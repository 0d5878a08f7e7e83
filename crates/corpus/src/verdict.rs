//! What the checker says of both forms of a bug, and whether that is right.

use crate::bug::Bug;
use crate::mark::Line;
use std::fmt;
use warpline_check::{Outcome, Refusal, Report};
use warpline_ir::{BuildErrors, Target};

/// What was reported of a bug.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The bug.
    pub bug: Bug,
    /// The line that its broken form must be refused at.
    pub line: Line,
    /// What was reported of the broken form.
    pub broken: Report,
    /// What was reported of the repaired form.
    pub repaired: Report,
}

/// Examines both forms of a bug.
pub fn verify(bug: &Bug, target: &Target) -> Result<Verdict, BuildErrors> {
    let broken = bug.broken()?;
    Ok(Verdict {
        bug: *bug,
        line: broken.line,
        broken: broken.examine(target),
        repaired: bug.repaired()?.examine(target),
    })
}

impl Verdict {
    /// The refusal of the broken form by the rule and at the line it names, if there is one.
    pub fn hit(&self) -> Option<&Refusal> {
        self.broken.refusals.iter().find(|r| {
            let others = r.others.iter().map(|side| side.at);
            let mut frames = others.chain([r.at]).flatten();
            !r.undecided && r.code() == self.bug.rule && frames.any(|at| self.line.holds(at))
        })
    }

    /// Is the broken form refused as it must be, and the repaired one proved?
    pub fn is_expected(&self) -> bool {
        self.hit().is_some() && self.repaired.outcome() == Outcome::Proved
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Bug { name, rule, .. } = self.bug;
        write!(f, "{name}: ")?;
        match self.hit() {
            Some(refusal) => write!(f, "{refusal}")?,
            None => {
                write!(f, "not refused by {rule} at {}, but ", self.line)?;
                told(f, &self.broken)?;
            }
        }
        if self.repaired.outcome() != Outcome::Proved {
            f.write_str("; repaired, it is not proved, but ")?;
            told(f, &self.repaired)?;
        }
        Ok(())
    }
}

/// The outcome of a report, and the sentences behind it.
fn told(f: &mut fmt::Formatter<'_>, report: &Report) -> fmt::Result {
    f.write_str(report.outcome().name())?;
    for refusal in &report.refusals {
        write!(f, "; {refusal}")?;
    }
    Ok(())
}
