//! Mutants that may survive, each with the reason.

use anyhow::{Context as _, Result};
use serde::Deserialize;

/// The committed list.
const LIST: &str = include_str!("../survivors.json");

/// A mutant that is as good as the kernel it was made from.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Survivor {
    /// The kernel: [`Subject::name`](crate::Subject::name).
    pub subject: String,
    /// The mutant: [`Mutation::id`](crate::Mutation::id).
    pub mutant: String,
    /// Why the order of its accesses is unchanged.
    pub why: String,
}

/// All mutants that may survive.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Survivors(pub Vec<Survivor>);

impl Survivors {
    /// The committed list.
    pub fn committed() -> Result<Self> {
        let list = serde_json::from_str(LIST).context("survivors.json cannot be read")?;
        Ok(Self(list))
    }

    /// Why a mutant may survive, if it may.
    pub fn why(&self, subject: &str, mutant: &str) -> Option<&str> {
        let same = |s: &&Survivor| s.subject == subject && s.mutant == mutant;
        self.0.iter().find(same).map(|s| s.why.as_str())
    }
}
