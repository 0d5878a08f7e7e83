//! Roles cover the CTA: named apart, none empty, one after the other, not too many threads.

use super::Case;
use crate::refusal::{Findings, Rule};
use warpline_ir::RoleId;

/// The rules of this group.
pub const RULES: &[Rule] = &[NAME, WARPS, ORDER, THREADS];

const NAME: Rule = Rule {
    code: "S.role-name",
    holds: "roles have different names",
};
const WARPS: Rule = Rule {
    code: "S.role-warps",
    holds: "a kernel has a role, and every role has a warp",
};
const ORDER: Rule = Rule {
    code: "S.role-order",
    holds: "each role's first warp follows the last warp of the role before it",
};
const THREADS: Rule = Rule {
    code: "S.threads",
    holds: "a CTA has no more threads than the target allows",
};

pub(crate) fn judge<'k>(case: &Case<'k>, found: &mut Findings<'k>) {
    let kernel = case.kernel;
    if kernel.roles.is_empty() {
        let text = "a kernel has at least one role; this one has none";
        found.refuse(&WARPS, Default::default(), None, text);
    }
    let mut next = 0u64;
    for (i, role) in kernel.roles.iter().enumerate() {
        let id = Some(RoleId(i as u32));
        if kernel.roles[..i].iter().any(|r| r.name == role.name) {
            let text = format!("roles have different names; {} is there twice", role.name);
            found.refuse(&NAME, role.loc, id, text);
        }
        if role.warps == 0 {
            let text = format!("a role has at least one warp; {} has none", role.name);
            found.refuse(&WARPS, role.loc, id, text);
        }
        if u64::from(role.first_warp) != next {
            let text = format!(
                "roles follow one another; {} begins at warp {}, not at {next}",
                role.name, role.first_warp
            );
            found.refuse(&ORDER, role.loc, id, text);
        }
        next = u64::from(role.first_warp) + u64::from(role.warps);
    }
    let threads = 32 * kernel.roles.iter().map(|r| u64::from(r.warps)).sum::<u64>();
    if threads > u64::from(case.target.threads) {
        let text = format!(
            "a CTA of {} has at most {} threads; the roles have {threads}",
            case.target.name, case.target.threads
        );
        found.refuse(&THREADS, kernel.roles[0].loc, None, text);
    }
}
