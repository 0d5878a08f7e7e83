//! One line breaks a rule once for a reader, however often its ops do.

use crate::refusal::Refusal;

/// A refusal, and how many more there are of its rule, line and role.
pub(crate) struct Group<'r> {
    pub(crate) first: &'r Refusal,
    pub(crate) more: usize,
}

/// Refusals by rule, line and role, in the order in which they were found.
pub(crate) fn groups(refusals: &[Refusal]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for r in refusals {
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
