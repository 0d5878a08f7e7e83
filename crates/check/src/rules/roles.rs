//! Roles cover the CTA: unique names, no empty role, no gaps, not too many threads.

use super::RuleContext;
use crate::codes;
use crate::diagnostic::{Findings, Rule};
use warpline_ir::RoleId;

/// The rules of this group.
pub const RULES: &[Rule] = &[NAME, WARPS, ORDER, THREADS];

const NAME: Rule = codes::S_ROLE_NAME;
const WARPS: Rule = codes::S_ROLE_WARPS;
const ORDER: Rule = codes::S_ROLE_ORDER;
const THREADS: Rule = codes::S_THREADS;

pub(crate) fn check<'k>(cx: &RuleContext<'k>, found: &mut Findings<'k>) {
    let kernel = cx.kernel;
    if kernel.roles.is_empty() {
        let text = "the kernel has no role";
        found.report(&WARPS, Default::default(), None, text);
    }
    let mut next = 0u64;
    for (i, role) in kernel.roles.iter().enumerate() {
        let id = Some(RoleId(i as u32));
        if kernel.roles[..i].iter().any(|r| r.name == role.name) {
            let text = format!("two roles have the name `{}`", role.name);
            found.report(&NAME, role.loc, id, text);
        }
        if role.warps == 0 {
            let text = format!("role `{}` has no warps", role.name);
            found.report(&WARPS, role.loc, id, text);
        }
        if u64::from(role.first_warp) != next {
            let text = format!(
                "role `{}` begins at warp {}, and the preceding roles end before warp {next}",
                role.name, role.first_warp
            );
            found.report(&ORDER, role.loc, id, text);
        }
        next = u64::from(role.first_warp) + u64::from(role.warps);
    }
    let threads = 32 * kernel.roles.iter().map(|r| u64::from(r.warps)).sum::<u64>();
    if threads > u64::from(cx.target.threads) {
        let text = format!(
            "the roles have {threads} threads; a CTA of {} has at most {}",
            cx.target.name, cx.target.threads
        );
        found.report(&THREADS, kernel.roles[0].loc, None, text);
    }
}
