//! R9, register budgets: `setmaxnreg`.
//!
//! Every thread starts with the same number of registers. A warpgroup that requests more
//! registers waits until others have released some. All requests together must fit into the registers that the
//! CTA starts with, or the last warpgroup waits forever.

use super::RuleContext;
use crate::codes;
use crate::diagnostic::{Findings, Message, Rule};
use warpline_ir::{Loc, RoleId, SyncOp};

/// The rules of this group.
pub const RULES: &[Rule] = &[COUNT, WARPGROUP, PLACE, DIRECTION, POOL];

pub(super) const COUNT: Rule = codes::R9_COUNT;
const WARPGROUP: Rule = codes::R9_WARPGROUP;
const PLACE: Rule = codes::R9_PLACE;
const DIRECTION: Rule = codes::R9_DIRECTION;
const POOL: Rule = codes::R9_POOL;

/// One `setmaxnreg`.
struct Request {
    role: Option<RoleId>,
    loc: Loc,
    count: u32,
    grow: bool,
}

/// Returns the register budget of a role: the most registers that it requests, or the number at
/// entry.
pub(super) fn budget(cx: &RuleContext, role: RoleId) -> u32 {
    let syncs = cx.ops_of(role).flat_map(|op| &op.facts.syncs);
    let requested = syncs.filter_map(|s| match s {
        SyncOp::SetMaxRegs { count, .. } => Some(*count),
        _ => None,
    });
    let threads = 32
        * cx.kernel
            .roles
            .iter()
            .fold(0u32, |n, r| n.saturating_add(r.warps));
    let entry = cx.target.entry_registers(threads);
    requested.max().unwrap_or(entry)
}

pub(crate) fn check<'k>(cx: &RuleContext<'k>, found: &mut Findings<'k>) {
    let kernel = cx.kernel;
    let mut requests = Vec::new();
    let mut exits = Vec::new();
    for op in &cx.ops {
        for s in &op.facts.syncs {
            let (role, loc) = (op.site.role, op.loc());
            if *s == SyncOp::Exit {
                exits.push((role, loc));
            }
            let &SyncOp::SetMaxRegs { count, grow } = s else {
                continue;
            };
            let exit = exits.iter().find(|(r, _)| r.is_none() || *r == role);
            if let Some((exit_role, exit_loc)) = exit {
                let text = "a warp that exits before `setmaxnreg` does not run it, and all warps of the warpgroup must";
                found.report(&PLACE, loc, role, text);
                found.label("exits here", *exit_loc, *exit_role);
            }
            if op.site.depth > 0 {
                let text = "this `setmaxnreg` is inside a loop or a condition";
                found.report(&PLACE, loc, role, text);
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
    let entry = cx
        .target
        .entry_registers(threads.min(u64::from(u32::MAX)) as u32);
    let mut total = 0u64;
    let mut role_texts = Vec::new();
    for (i, role) in kernel.roles.iter().enumerate() {
        let id = RoleId(i as u32);
        let role_requests: Vec<_> = requests
            .iter()
            .filter(|r| r.role.is_none_or(|r| r == id))
            .collect();
        if let Some(first) = role_requests.first()
            && !(role.first_warp.is_multiple_of(4) && role.warps.is_multiple_of(4))
        {
            let text = format!(
                "role `{}` has {} warps from warp {} on, which are not whole warpgroups",
                role.name, role.warps, role.first_warp
            );
            found.report(&WARPGROUP, first.loc, Some(id), text);
        }
        let mut current = entry;
        for r in &role_requests {
            let (wrong, verb) = if r.grow {
                (r.count < current, "inc")
            } else {
                (r.count > current, "dec")
            };
            if wrong {
                let text = format!(
                    "`setmaxnreg.{verb}` sets {} registers per thread in role `{}`, which has {current}",
                    r.count, role.name
                );
                found.report(&DIRECTION, r.loc, Some(id), text);
            }
            current = r.count;
        }
        let most = role_requests.iter().map(|r| r.count).max().unwrap_or(entry);
        total += 32 * u64::from(role.warps) * u64::from(most);
        role_texts.push(format!(
            "role `{}` has {} threads × {most} registers",
            role.name,
            32 * role.warps
        ));
    }
    let pool = threads * u64::from(entry);
    if total > pool {
        let text = Message::new(format!(
            "the roles request {total} registers, and the CTA has {pool}"
        ))
        .label("waits forever for registers here")
        .cause(format!(
            "{}; a CTA of {threads} threads starts with {entry} registers per thread",
            role_texts.join(", ")
        ));
        let last = requests.iter().filter(|r| r.grow).max_by_key(|r| r.count);
        let last = last.unwrap_or(&requests[0]);
        found.report(&POOL, last.loc, last.role, text);
    }
}
