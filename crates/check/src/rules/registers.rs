//! R9, registers: what setmaxnreg may do.
//!
//! Every thread enters with the same number of registers. A warpgroup that
//! asks for more waits until others have given some back; what is asked for
//! in the end must fit into what the CTA entered with, or it waits for ever.

use super::Case;
use crate::refusal::{Findings, Rule};
use warpline_ir::{Loc, RoleId, Sync};

/// The rules of this group.
pub const RULES: &[Rule] = &[COUNT, WARPGROUP, PLACE, DIRECTION, POOL];

pub(super) const COUNT: Rule = Rule {
    code: "R9.count",
    holds: "setmaxnreg takes a multiple of 8 from 24 to 256",
};
const WARPGROUP: Rule = Rule {
    code: "R9.warpgroup",
    holds: "a role that runs setmaxnreg is made of whole, aligned warpgroups",
};
const PLACE: Rule = Rule {
    code: "R9.place",
    holds: "setmaxnreg stands at the top of a role, under no condition, in no loop and behind no exit",
};
const DIRECTION: Rule = Rule {
    code: "R9.direction",
    holds: "setmaxnreg.dec does not raise the count and setmaxnreg.inc does not lower it",
};
const POOL: Rule = Rule {
    code: "R9.pool",
    holds: "the registers of all warpgroups fit into what the CTA entered with",
};

/// One setmaxnreg.
struct Request {
    role: Option<RoleId>,
    loc: Loc,
    count: u32,
    grow: bool,
}

/// The registers that a thread of a role has at most: those it asks for, or
/// those it enters with.
pub(super) fn budget(case: &Case, role: RoleId) -> u32 {
    let asked = case.ops_of(role).flat_map(|op| &op.facts.syncs);
    let asked = asked.filter_map(|s| match s {
        Sync::SetMaxRegs { count, .. } => Some(*count),
        _ => None,
    });
    let threads = 32
        * case
            .kernel
            .roles
            .iter()
            .fold(0u32, |n, r| n.saturating_add(r.warps));
    let entry = case.target.entry_registers(threads);
    asked.max().unwrap_or(entry)
}

pub(crate) fn judge<'k>(case: &Case<'k>, found: &mut Findings<'k>) {
    let kernel = case.kernel;
    let mut requests = Vec::new();
    // The roles with an exit so far.
    let mut left = Vec::new();
    for op in &case.ops {
        for s in &op.facts.syncs {
            let (role, loc) = (op.site.role, op.loc());
            if *s == Sync::Exit {
                left.push((role, loc));
            }
            let &Sync::SetMaxRegs { count, grow } = s else {
                continue;
            };
            let exit = left.iter().find(|(r, _)| r.is_none() || *r == role);
            if let Some((of, exit)) = exit {
                let text = "setmaxnreg is run by all warps of a warpgroup; one that exits before does not run it";
                found.refuse(&PLACE, loc, role, text);
                found.beside("the exit", *exit, *of);
            }
            if op.site.depth > 0 {
                let text = "setmaxnreg stands at the top of a role; this one is inside a loop or a condition";
                found.refuse(&PLACE, loc, role, text);
            }
            requests.push(Request {
                role,
                loc,
                count,
                grow,
            });
        }
    }
    if requests.is_empty() {
        return;
    }
    let threads = kernel
        .roles
        .iter()
        .map(|r| 32 * u64::from(r.warps))
        .sum::<u64>();
    let entry = case
        .target
        .entry_registers(threads.min(u64::from(u32::MAX)) as u32);
    let mut total = 0u64;
    let mut parts = Vec::new();
    for (i, role) in kernel.roles.iter().enumerate() {
        let id = RoleId(i as u32);
        let mine: Vec<_> = requests
            .iter()
            .filter(|r| r.role.is_none_or(|r| r == id))
            .collect();
        if let Some(first) = mine.first()
            && !(role.first_warp.is_multiple_of(4) && role.warps.is_multiple_of(4))
        {
            let text = format!(
                "setmaxnreg is run by whole warpgroups; role {} is {} warps from warp {} on",
                role.name, role.warps, role.first_warp
            );
            found.refuse(&WARPGROUP, first.loc, Some(id), text);
        }
        let mut now = entry;
        for r in &mine {
            let (wrong, verb) = if r.grow {
                (r.count < now, "inc does not lower")
            } else {
                (r.count > now, "dec does not raise")
            };
            if wrong {
                let text = format!(
                    "setmaxnreg.{verb} the number of registers; role {} has {now} and asks for {}",
                    role.name, r.count
                );
                found.refuse(&DIRECTION, r.loc, Some(id), text);
            }
            now = r.count;
        }
        let held = mine.iter().map(|r| r.count).max().unwrap_or(entry);
        total += 32 * u64::from(role.warps) * u64::from(held);
        parts.push(format!("{} {} × {held}", role.name, 32 * role.warps));
    }
    let pool = threads * u64::from(entry);
    if total > pool {
        let text = format!(
            "a CTA of {threads} threads enters with {entry} registers each, {pool} in all; the roles ask for {total} ({}), and the last to ask would wait for ever",
            parts.join(", ")
        );
        let last = requests.iter().filter(|r| r.grow).max_by_key(|r| r.count);
        let last = last.unwrap_or(&requests[0]);
        found.refuse(&POOL, last.loc, last.role, text);
    }
}
