//! R10, named barriers: numbers and thread counts.

use super::RuleContext;
use crate::codes;
use crate::diagnostic::{Findings, Message, Rule};
use warpline_ir::{Loc, NamedId, RoleId, SyncOp};

/// The rules of this group.
pub const RULES: &[Rule] = &[ID, UNIQUE, THREADS, SAME];

const ID: Rule = codes::R10_ID;
const UNIQUE: Rule = codes::R10_UNIQUE;
pub(super) const THREADS: Rule = codes::R10_THREADS;
const SAME: Rule = codes::R10_SAME;

pub(crate) fn check<'k>(cx: &RuleContext<'k>, found: &mut Findings<'k>) {
    let kernel = cx.kernel;
    let last = cx.target.named_barriers - 1;
    for (i, b) in kernel.named.iter().enumerate() {
        if !(1..=last).contains(&b.id) {
            let text = format!(
                "named barrier `{}` has the number {}; {} has the numbers 1 to {last}",
                b.name, b.id, cx.target.name
            );
            found.report(&ID, b.loc, None, text);
        }
        if let Some(other) = kernel.named[..i].iter().find(|o| o.id == b.id) {
            let text = format!(
                "named barriers `{}` and `{}` both have the number {}",
                other.name, b.name, b.id
            );
            found.report(&UNIQUE, b.loc, None, text);
        }
    }
    let cta = 32 * kernel.roles.iter().map(|r| u64::from(r.warps)).sum::<u64>();
    let mut first_use: Vec<Option<(u32, Loc, Option<RoleId>)>> = vec![None; kernel.named.len()];
    for op in &cx.ops {
        let Some((bar, threads)) = op.facts.syncs.iter().find_map(barrier_and_threads) else {
            continue;
        };
        let name = &kernel.named(bar).name;
        let (role, loc) = (op.site.role, op.loc());
        if u64::from(threads) > cta {
            let text =
                format!("named barrier `{name}` counts {threads} threads, and the CTA has {cta}");
            found.report(&THREADS, loc, role, text);
        }
        match first_use[bar.index()] {
            None => first_use[bar.index()] = Some((threads, loc, role)),
            Some((seen, other_loc, other_role)) if seen != threads => {
                let text = Message::new(format!(
                    "named barrier `{name}` counts {threads} threads in one place and {seen} in another"
                ))
                .label(format!("counts {threads} threads here"));
                found.report(&SAME, loc, role, text);
                found.label(format!("counts {seen} threads here"), other_loc, other_role);
            }
            Some(_) => {}
        }
    }
}

fn barrier_and_threads(s: &SyncOp) -> Option<(NamedId, u32)> {
    match *s {
        SyncOp::NamedSync { bar, threads }
        | SyncOp::NamedArrive { bar, threads }
        | SyncOp::NamedReduce { bar, threads, .. } => Some((bar, threads)),
        _ => None,
    }
}
