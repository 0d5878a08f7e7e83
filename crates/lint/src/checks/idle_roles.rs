//! Warps without work, and roles with little work.

use crate::finding::LintFinding;
use crate::format::{count, percent, ratio};
use crate::input::{FindingList, LintInput};
use warpline_cpu::{RoleStats, WarpStats};
use warpline_ir::Role;

/// The share of the busiest role's ops per warp below which a role warns.
///
/// The check excludes roles that issue asynchronous operations, because an engine works while they
/// wait, and roles of one warp.
pub const MIN_WORK_SHARE: f64 = 1.0 / 16.0;

/// Does a warp neither access memory nor issue asynchronous operations? Then it only takes part in
/// barriers.
fn is_idle(w: &WarpStats) -> bool {
    w.accesses + w.async_ops == 0
}

/// Returns the ops per warp, without idle warps.
fn ops_per_warp(role: &RoleStats) -> f64 {
    let busy = role.warps.iter().filter(|w| !is_idle(w));
    let all: u64 = busy.clone().map(|w| w.instructions).sum();
    ratio(all, busy.count() as u64)
}

pub(crate) fn run(input: &LintInput<'_>, mut findings: FindingList<'_>) -> Vec<LintFinding> {
    let stats = match &input.stats {
        Ok(stats) => stats,
        Err(why) => return findings.skip(why),
    };
    let most = stats.roles.iter().map(ops_per_warp).fold(0.0, f64::max);
    for (role, ran) in input.kernel.roles.iter().zip(&stats.roles) {
        let idle = ran.warps.iter().filter(|w| is_idle(w)).count() as u64;
        let jobs: u64 = ran.warps.iter().map(|w| w.async_ops).sum();
        let all = ran.warps.len() as u64;
        if idle > 0 && !only_completes_a_warpgroup(role, ran) {
            let text = format!(
                "{idle} of {all} warps neither access memory nor issue asynchronous operations"
            );
            findings.warn_role(text, Some(role));
        } else if role.warps > 1 && jobs == 0 && ops_per_warp(ran) < MIN_WORK_SHARE * most {
            let text = format!(
                "each of {} runs {:.0} ops, and a warp of the busiest role runs {most:.0}",
                count(all, "warp"),
                ops_per_warp(ran)
            );
            findings.warn_role(text, Some(role));
        }
    }
    let warps = stats.roles.iter().flat_map(|r| &r.warps);
    let idle = warps.clone().filter(|w| is_idle(w)).count() as u64;
    let all = warps.count() as u64;
    findings.or_pass(|| match idle {
        0 => "every warp accesses memory or issues asynchronous operations".to_owned(),
        _ => format!(
            "{} of the warps only complete the warpgroup of a role with `setmaxnreg`",
            percent(idle, all)
        ),
    })
}

/// Do the idle warps only complete a warpgroup, as `setmaxnreg` requires?
fn only_completes_a_warpgroup(role: &Role, ran: &RoleStats) -> bool {
    let mut groups = ran.warps.chunks(4);
    role.registers.is_some() && groups.all(|g| !g.iter().all(is_idle))
}
