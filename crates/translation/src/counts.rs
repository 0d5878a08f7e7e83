//! How much was compared.

use crate::act::{Act, Kind};
use std::collections::BTreeMap;

/// What a PTX text was found to do, in agreement with its program.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Acts that both sides agree on, by kind.
    pub acts: BTreeMap<Kind, usize>,
}

impl Counts {
    pub(crate) fn of<'a>(acts: impl Iterator<Item = &'a Act<'a>>) -> Self {
        let mut counts = Self::default();
        for act in acts {
            *counts.acts.entry(act.kind).or_default() += 1;
        }
        counts
    }

    /// How often an act of a kind stands in the text.
    pub fn get(&self, kind: Kind) -> usize {
        self.acts.get(&kind).copied().unwrap_or(0)
    }

    /// All acts.
    pub fn total(&self) -> usize {
        self.acts.values().sum()
    }
}
