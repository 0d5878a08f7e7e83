//! Counts of the compared actions.

use crate::action::{Action, ActionKind};
use std::collections::BTreeMap;

/// The actions on which a PTX text and its program agree.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ActionCounts {
    /// The number of actions of each kind.
    pub actions: BTreeMap<ActionKind, usize>,
}

impl ActionCounts {
    pub(crate) fn of<'a>(actions: impl Iterator<Item = &'a Action<'a>>) -> Self {
        let mut counts = Self::default();
        for action in actions {
            *counts.actions.entry(action.kind).or_default() += 1;
        }
        counts
    }

    /// Returns the number of actions of one kind.
    pub fn get(&self, kind: ActionKind) -> usize {
        self.actions.get(&kind).copied().unwrap_or(0)
    }

    /// Returns the total number of actions.
    pub fn total(&self) -> usize {
        self.actions.values().sum()
    }
}
