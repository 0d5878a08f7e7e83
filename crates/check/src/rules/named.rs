//! R10, named barriers: numbers and thread counts.

use super::Case;
use crate::refusal::{Findings, Rule};
use warpline_ir::{NamedId, Sync};

/// The rules of this group.
pub const RULES: &[Rule] = &[ID, UNIQUE, THREADS, SAME];

const ID: Rule = Rule {
    code: "R10.id",
    holds: "a named barrier's number is from 1 on, below the target's; 0 is the CTA's own",
};
const UNIQUE: Rule = Rule {
    code: "R10.unique",
    holds: "named barriers have different numbers",
};
pub(super) const THREADS: Rule = Rule {
    code: "R10.threads",
    holds: "the threads of a named barrier are a multiple of 32, at least 32, and in the CTA",
};
const SAME: Rule = Rule {
    code: "R10.same",
    holds: "all sides of a named barrier name the same number of threads",
};

pub(crate) fn judge<'k>(case: &Case<'k>, found: &mut Findings<'k>) {
    let kernel = case.kernel;
    let last = case.target.named_barriers - 1;
    for (i, b) in kernel.named.iter().enumerate() {
        if !(1..=last).contains(&b.id) {
            let text = format!(
                "a named barrier's number is 1 to {last}; {} has {}",
                b.name, b.id
            );
            found.refuse(&ID, b.loc, None, text);
        }
        if let Some(other) = kernel.named[..i].iter().find(|o| o.id == b.id) {
            let text = format!(
                "named barriers have different numbers; {} and {} both have {}",
                other.name, b.name, b.id
            );
            found.refuse(&UNIQUE, b.loc, None, text);
        }
    }
    let cta = 32 * kernel.roles.iter().map(|r| u64::from(r.warps)).sum::<u64>();
    let mut first: Vec<Option<(u32, String)>> = vec![None; kernel.named.len()];
    for op in &case.ops {
        let Some((bar, threads)) = op.facts.syncs.iter().find_map(named) else {
            continue;
        };
        let name = &kernel.named(bar).name;
        let (role, loc) = (op.site.role, op.loc());
        if u64::from(threads) > cta {
            let text = format!(
                "a named barrier has no more threads than the CTA's {cta}; {name} is given {threads}"
            );
            found.refuse(&THREADS, loc, role, text);
        }
        match &first[bar.index()] {
            None => first[bar.index()] = Some((threads, kernel.locs.show(loc))),
            Some((seen, line)) if *seen != threads => {
                let text = format!(
                    "all sides of a named barrier name the same number of threads; {name} has {seen} at {line} and {threads} here"
                );
                found.refuse(&SAME, loc, role, text);
            }
            Some(_) => {}
        }
    }
}

fn named(s: &Sync) -> Option<(NamedId, u32)> {
    match *s {
        Sync::NamedSync { bar, threads }
        | Sync::NamedArrive { bar, threads }
        | Sync::NamedTally { bar, threads, .. } => Some((bar, threads)),
        _ => None,
    }
}
