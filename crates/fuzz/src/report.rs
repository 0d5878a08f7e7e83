//! What a campaign found.

use crate::differential::{Outcomes, Subject};
use std::collections::BTreeMap;

/// Kinds of finding.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Sort {
    /// Proved, and a run goes wrong.
    Unsound,
    /// Correct by construction, and a run goes wrong: the generator or the executor is at fault.
    Generator,
    /// Correct by construction, and refuted.
    FalseAlarm,
    /// Correct by construction, and undecided.
    Undecided,
    /// The checker panicked.
    Panic,
}

impl Sort {
    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Sort::Unsound => "proved and wrong",
            Sort::Generator => "correct and wrong",
            Sort::FalseAlarm => "correct and refuted",
            Sort::Undecided => "correct and undecided",
            Sort::Panic => "panic",
        }
    }
}

/// A finding.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The seed it came from.
    pub seed: u64,
    /// Its kind.
    pub sort: Sort,
    /// What it exercises.
    pub cause: String,
    /// The kernel.
    pub subject: Subject,
    /// What the checker and the executor say.
    pub outcomes: Outcomes,
}

/// The tally of a campaign.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Kernels judged.
    pub kernels: u64,
    /// Kernels with a twist or a mutation.
    pub changed: u64,
    /// Kernels that could not be built.
    pub unbuilt: u64,
    /// Proved kernels.
    pub proved: u64,
    /// Refuted kernels.
    pub refuted: u64,
    /// Undecided kernels.
    pub undecided: u64,
    /// Findings.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Adds another tally.
    pub fn add(&mut self, other: Report) {
        self.kernels += other.kernels;
        self.changed += other.changed;
        self.unbuilt += other.unbuilt;
        self.proved += other.proved;
        self.refuted += other.refuted;
        self.undecided += other.undecided;
        self.findings.extend(other.findings);
    }

    /// Findings of a kind.
    pub fn of(&self, sort: Sort) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |f| f.sort == sort)
    }

    /// Findings by kind and cause, with the first seed of each.
    pub fn by_cause(&self) -> BTreeMap<(Sort, &str), (u64, u64)> {
        let mut all = BTreeMap::new();
        for f in &self.findings {
            let entry = all.entry((f.sort, f.cause.as_str())).or_insert((0, f.seed));
            entry.0 += 1;
        }
        all
    }
}
