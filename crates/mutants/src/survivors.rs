//! Mutants that may survive, each with the reason.

use anyhow::{Context as _, Result};
use serde::Deserialize;

/// The committed list.
const LIST: &str = include_str!("../survivors.json");

/// A mutant that is as good as the kernel it was made from, or several: a `*`
/// in the names stands for anything.
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
        let same = |s: &&Survivor| s.is(subject, mutant);
        self.0.iter().find(same).map(|s| s.why.as_str())
    }
}

impl Survivor {
    /// Is it that mutant of that kernel?
    pub fn is(&self, subject: &str, mutant: &str) -> bool {
        matches(&self.subject, subject) && matches(&self.mutant, mutant)
    }
}

/// Does a name match a pattern in which a `*` stands for anything?
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|name| {
            let ends = name.char_indices().map(|(i, _)| i).chain([name.len()]);
            ends.into_iter().any(|i| matches(rest, &name[i..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_stands_for_anything() {
        assert!(matches("a*", "a") && matches("a*c", "abc") && matches("*", ""));
        assert!(matches("schedule x, * in *", "schedule x, y in z"));
        assert!(!matches("a*c", "abd") && !matches("a", "ab") && !matches("b*", "ab"));
    }
}
