//! The saved findings: shrunk kernels that a test replays.

use crate::differential::{CheckOutcome, Effort, FuzzCase};
use crate::launch::FuzzLaunchValues;
use crate::report::{FindingKind, FuzzFinding};
use serde::{Deserialize, Serialize};

/// A kernel that was once a finding.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CorpusEntry {
    /// The cause.
    pub cause: String,
    /// Whether the kernel is correct, so that the checker must prove it.
    pub correct: bool,
    /// The kernel.
    pub case: FuzzCase,
    /// A failing launch of an incorrect kernel.
    pub values: Option<FuzzLaunchValues>,
    /// The fault of that launch.
    #[serde(default)]
    pub fault: Option<String>,
}

impl CorpusEntry {
    /// Creates the entry of a finding.
    pub fn from_finding(finding: &FuzzFinding) -> Self {
        let failure = finding.outcome.failure.as_ref();
        Self {
            cause: finding.cause.clone(),
            correct: matches!(
                finding.kind,
                FindingKind::FalseAlarm | FindingKind::Undecided
            ),
            case: finding.case.clone(),
            values: failure.map(|f| f.values.clone()),
            fault: failure.map(|f| f.kind.clone()),
        }
    }

    /// Returns whether the checker still gives the wrong verdict: it proves an incorrect kernel, or
    /// does not prove a correct one.
    pub fn is_open(&self) -> bool {
        let Some(kernel) = self.case.kernel() else {
            return false;
        };
        (crate::verdict(&kernel).0 == CheckOutcome::Proved) != self.correct
    }

    /// Returns whether the executor still finds a fault in an incorrect kernel and none in a correct one.
    pub fn is_reproduced(&self) -> bool {
        let Some(kernel) = self.case.kernel() else {
            return false;
        };
        let failure = match &self.values {
            Some(values) => self.case.run_with(&kernel, values, Effort::NORMAL),
            None => self.case.run(&kernel, 1, Effort::NORMAL, &[]),
        };
        failure.is_none() == self.correct
    }
}
