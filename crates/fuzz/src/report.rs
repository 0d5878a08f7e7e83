//! The report of a campaign.

use crate::differential::{CaseOutcome, FuzzCase};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The kind of a finding.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord, Serialize, Deserialize)]
pub enum FindingKind {
    /// The checker proved the kernel, and a run fails.
    Unsound,
    /// The kernel is correct by construction, and a run fails: a bug of the generator or the executor.
    Generator,
    /// The kernel is correct by construction, and the checker refuted it.
    FalseAlarm,
    /// The kernel is correct by construction, and the checker did not decide.
    Undecided,
    /// The checker panicked.
    Panic,
    /// The checker ran out of time or memory.
    Exhausted,
}

impl FindingKind {
    /// All kinds.
    pub const ALL: [FindingKind; 6] = [
        FindingKind::Unsound,
        FindingKind::Generator,
        FindingKind::FalseAlarm,
        FindingKind::Undecided,
        FindingKind::Panic,
        FindingKind::Exhausted,
    ];

    /// Returns the name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            FindingKind::Unsound => "proved and failed",
            FindingKind::Generator => "correct and failed",
            FindingKind::FalseAlarm => "correct and refuted",
            FindingKind::Undecided => "correct and undecided",
            FindingKind::Panic => "panic",
            FindingKind::Exhausted => "out of time or memory",
        }
    }
}

/// A finding.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FuzzFinding {
    /// The seed.
    pub seed: u64,
    /// The kind.
    pub kind: FindingKind,
    /// The cause.
    pub cause: String,
    /// The kernel.
    pub case: FuzzCase,
    /// The verdict and the failed run.
    pub outcome: CaseOutcome,
}

/// The counts and findings of a campaign.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FuzzReport {
    /// The number of kernels.
    pub kernels: u64,
    /// Kernels with an injected bug or a mutation.
    pub changed: u64,
    /// Kernels that could not be built.
    pub unbuilt: u64,
    /// Proved kernels.
    pub proved: u64,
    /// Refuted kernels.
    pub refuted: u64,
    /// Undecided kernels.
    pub undecided: u64,
    /// The verdicts of kernels with an injected bug, by cause.
    pub bugs: BTreeMap<String, BugCounts>,
    /// Findings.
    pub findings: Vec<FuzzFinding>,
}

/// The verdicts of the kernels with one injected bug.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct BugCounts {
    /// Refuted.
    pub refuted: u64,
    /// Undecided.
    pub undecided: u64,
    /// Proved, and no run fails.
    pub harmless: u64,
    /// Proved, and a run fails.
    pub unsound: u64,
}

impl FuzzReport {
    /// Adds the counts and findings of another report.
    pub fn add(&mut self, other: FuzzReport) {
        self.kernels += other.kernels;
        self.changed += other.changed;
        self.unbuilt += other.unbuilt;
        self.proved += other.proved;
        self.refuted += other.refuted;
        self.undecided += other.undecided;
        self.findings.extend(other.findings);
        for (cause, counts) in other.bugs {
            let sum = self.bugs.entry(cause).or_default();
            sum.refuted += counts.refuted;
            sum.undecided += counts.undecided;
            sum.harmless += counts.harmless;
            sum.unsound += counts.unsound;
        }
    }

    /// Returns the findings of a kind.
    pub fn of_kind(&self, kind: FindingKind) -> impl Iterator<Item = &FuzzFinding> {
        self.findings.iter().filter(move |f| f.kind == kind)
    }

    /// Returns, for each construct, the number of correct kernels that are refuted and undecided.
    pub fn by_construct(&self) -> BTreeMap<&'static str, [u64; 2]> {
        let mut all = BTreeMap::new();
        for f in &self.findings {
            let column = match f.kind {
                FindingKind::FalseAlarm => 0,
                FindingKind::Undecided => 1,
                _ => continue,
            };
            for word in f.case.plan.constructs() {
                all.entry(word).or_insert([0; 2])[column] += 1;
            }
        }
        all
    }

    /// Returns the number of findings and the first seed, by kind and cause.
    pub fn by_cause(&self) -> BTreeMap<(FindingKind, &str), (u64, u64)> {
        let mut all = BTreeMap::new();
        for f in &self.findings {
            let entry = all.entry((f.kind, f.cause.as_str())).or_insert((0, f.seed));
            entry.0 += 1;
        }
        all
    }
}
