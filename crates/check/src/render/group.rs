//! Groups diagnostics: several ops of one line that break the same rule are reported once.

use crate::diagnostic::Diagnostic;

/// A diagnostic, and the number of further ones with the same rule, line and role.
pub(crate) struct Group<'r> {
    pub(crate) first: &'r Diagnostic,
    pub(crate) more: usize,
}

/// Groups diagnostics by rule, line and role, in the order in which they were found.
pub(crate) fn groups(diagnostics: &[Diagnostic]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for r in diagnostics {
        let same = |g: &&mut Group<'_>| {
            let first = g.first;
            r.at.is_some() && first.code() == r.code() && first.at == r.at && first.role == r.role
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.more += 1,
            None => groups.push(Group { first: r, more: 0 }),
        }
    }
    groups
}
