//! What the checker says of one kernel, whether it lets it pass or not.

use crate::assumption::Assumption;
use crate::refusal::Refusal;
use std::time::Duration;

/// The outcome of a check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// The kernel's name.
    pub kernel: String,
    /// Its program hash; empty if an id of the kernel names nothing.
    pub hash: String,
    /// Breaches, and what could not be decided; none: proved.
    pub refusals: Vec<Refusal>,
    /// Facts that the verdict rests on and that the checker does not prove.
    pub assumptions: Vec<Assumption>,
    /// States of the protocol that were reached, up to the fixed point.
    pub states: u64,
    /// Steps of warps that were walked to reach them.
    pub steps: u64,
    /// How long it took.
    pub time: Duration,
}

/// What a report comes to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    /// Every rule holds, for every trip count.
    Proved,
    /// A rule is broken.
    Refuted,
    /// No rule is seen broken, but not all could be decided.
    Undecided,
}

impl Outcome {
    /// As a word.
    pub const fn name(self) -> &'static str {
        match self {
            Outcome::Proved => "proved",
            Outcome::Refuted => "refuted",
            Outcome::Undecided => "undecided",
        }
    }
}

impl Report {
    /// What it comes to.
    pub fn outcome(&self) -> Outcome {
        if self.refusals.iter().any(|r| !r.undecided) {
            Outcome::Refuted
        } else if self.refusals.is_empty() {
            Outcome::Proved
        } else {
            Outcome::Undecided
        }
    }
}
