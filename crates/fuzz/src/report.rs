//! What a campaign found.

use crate::differential::{Outcomes, Subject};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Kinds of finding.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord, Serialize, Deserialize)]
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
    /// The checker ran out of time or memory.
    Exhausted,
}

impl Sort {
    /// All of them.
    pub const ALL: [Sort; 6] = [
        Sort::Unsound,
        Sort::Generator,
        Sort::FalseAlarm,
        Sort::Undecided,
        Sort::Panic,
        Sort::Exhausted,
    ];

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Sort::Unsound => "proved and wrong",
            Sort::Generator => "correct and wrong",
            Sort::FalseAlarm => "correct and refuted",
            Sort::Undecided => "correct and undecided",
            Sort::Panic => "panic",
            Sort::Exhausted => "out of time or memory",
        }
    }
}

/// A finding.
#[derive(Clone, Debug, Serialize, Deserialize)]
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
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
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
    /// What became of kernels with a twist, by its cause.
    pub twists: BTreeMap<String, Twisted>,
    /// Findings.
    pub findings: Vec<Finding>,
}

/// What became of kernels with one twist.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Twisted {
    /// Refuted.
    pub refuted: u64,
    /// Undecided.
    pub undecided: u64,
    /// Proved, and no run goes wrong.
    pub harmless: u64,
    /// Proved, and a run goes wrong.
    pub wrong: u64,
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
        for (cause, t) in other.twists {
            let sum = self.twists.entry(cause).or_default();
            sum.refuted += t.refuted;
            sum.undecided += t.undecided;
            sum.harmless += t.harmless;
            sum.wrong += t.wrong;
        }
    }

    /// Findings of a kind.
    pub fn of(&self, sort: Sort) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |f| f.sort == sort)
    }

    /// For each construct: correct kernels with it that are refuted, and undecided.
    pub fn by_construct(&self) -> BTreeMap<&'static str, [u64; 2]> {
        let mut all = BTreeMap::new();
        for f in &self.findings {
            let at = match f.sort {
                Sort::FalseAlarm => 0,
                Sort::Undecided => 1,
                _ => continue,
            };
            for word in f.subject.plan.constructs() {
                all.entry(word).or_insert([0; 2])[at] += 1;
            }
        }
        all
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
