//! The list of equivalent mutants, each with the reason.

use anyhow::{Context as _, Result};
use serde::Deserialize;

/// The committed list.
const LIST: &str = include_str!("../equivalent.json");

/// One or more mutants that are equivalent to their kernel; a `*` in a name matches any text.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EquivalentMutant {
    /// The kernel: [`OriginalKernel::name`](crate::OriginalKernel::name).
    pub kernel: String,
    /// The mutant: [`Mutation::id`](crate::Mutation::id).
    pub mutant: String,
    /// The reason why the mutation does not change the order of accesses.
    pub reason: String,
}

/// The equivalent mutants, which the checker may prove.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EquivalentMutants(pub Vec<EquivalentMutant>);

impl EquivalentMutants {
    /// Reads the committed list.
    pub fn committed() -> Result<Self> {
        let list = serde_json::from_str(LIST).context("equivalent.json is invalid")?;
        Ok(Self(list))
    }

    /// Returns the reason why a mutant is equivalent, if the list has it.
    pub fn reason(&self, kernel: &str, mutant: &str) -> Option<&str> {
        let same = |s: &&EquivalentMutant| s.matches(kernel, mutant);
        self.0.iter().find(same).map(|s| s.reason.as_str())
    }
}

impl EquivalentMutant {
    /// Returns whether the entry covers this mutant of this kernel.
    pub fn matches(&self, kernel: &str, mutant: &str) -> bool {
        matches(&self.kernel, kernel) && matches(&self.mutant, mutant)
    }
}

/// Returns whether a name matches a pattern in which `*` matches any text.
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
    fn a_star_matches_any_text() {
        assert!(matches("a*", "a") && matches("a*c", "abc") && matches("*", ""));
        assert!(matches("schedule x, * in *", "schedule x, y in z"));
        assert!(!matches("a*c", "abd") && !matches("a", "ab") && !matches("b*", "ab"));
    }
}
