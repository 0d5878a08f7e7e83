//! The findings that are kept: shrunk kernels, replayed by a test.

use crate::differential::{Effort, Subject, Verdict};
use crate::launch::Values;
use crate::report::{Finding, Sort};
use serde::{Deserialize, Serialize};

/// A kernel that was a finding once.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// What it exercises.
    pub cause: String,
    /// Is it correct, so that it must be proved?
    pub correct: bool,
    /// The kernel.
    pub subject: Subject,
    /// A launch that goes wrong, of a wrong kernel.
    pub values: Option<Values>,
    /// What happens then.
    #[serde(default)]
    pub fault: Option<String>,
}

impl Entry {
    /// The entry of a finding.
    pub fn of(finding: &Finding) -> Self {
        let failure = finding.outcomes.failure.as_ref();
        Self {
            cause: finding.cause.clone(),
            correct: matches!(finding.sort, Sort::FalseAlarm | Sort::Undecided),
            subject: finding.subject.clone(),
            values: failure.map(|f| f.values.clone()),
            fault: failure.map(|f| f.kind.clone()),
        }
    }

    /// Does the checker still get the kernel wrong?
    ///
    /// A wrong kernel must not be proved; a correct one must be.
    pub fn is_open(&self) -> bool {
        let Some(kernel) = self.subject.kernel() else {
            return false;
        };
        (crate::verdict(&kernel).0 == Verdict::Proved) != self.correct
    }

    /// Does the executor still say what it said: a fault of a wrong kernel, none of a correct one?
    pub fn is_reproduced(&self) -> bool {
        let Some(kernel) = self.subject.kernel() else {
            return false;
        };
        let failure = match &self.values {
            Some(values) => self.subject.run_with(&kernel, values, Effort::NORMAL),
            None => self.subject.run(&kernel, 1, Effort::NORMAL, &[]),
        };
        failure.is_none() == self.correct
    }
}
