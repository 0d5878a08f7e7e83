//! Warps that do nothing, and roles that do little.

use crate::case::{Answers, Case};
use crate::finding::Finding;
use crate::words::{count, percent, ratio};
use warpline_cpu::{RoleStats, WarpStats};
use warpline_ir::Role;

/// The share of the busiest role's ops per warp below which a role warns.
///
/// Roles that give work to engines are left out, as an engine does the work
/// while they wait, and so are roles of one warp: that is what a helper costs.
pub const LITTLE: f64 = 1.0 / 16.0;

/// Everything that a kernel does leaves through memory: a warp that touches
/// none and gives no engine work is there for the barriers alone.
fn is_idle(w: &WarpStats) -> bool {
    w.accesses + w.jobs == 0
}

/// Ops per warp that is not idle.
fn ops(role: &RoleStats) -> f64 {
    let busy = role.warps.iter().filter(|w| !is_idle(w));
    let all: u64 = busy.clone().map(|w| w.instructions).sum();
    ratio(all, busy.count() as u64)
}

pub(crate) fn look(case: &Case<'_>, mut answers: Answers<'_>) -> Vec<Finding> {
    let stats = match &case.stats {
        Ok(stats) => stats,
        Err(why) => return answers.and_not_looked(why),
    };
    let most = stats.roles.iter().map(ops).fold(0.0, f64::max);
    for (role, ran) in case.kernel.roles.iter().zip(&stats.roles) {
        let idle = ran.warps.iter().filter(|w| is_idle(w)).count() as u64;
        let jobs: u64 = ran.warps.iter().map(|w| w.jobs).sum();
        let all = ran.warps.len() as u64;
        if idle > 0 && !stands_by(role, ran) {
            let text =
                format!("warps that touch no memory and give no engine work: {idle} of {all}");
            answers.warn_role(text, Some(role));
        } else if role.warps > 1 && jobs == 0 && ops(ran) < LITTLE * most {
            let text = format!(
                "each of {} runs {:.0} ops where the busiest role's run {most:.0}",
                count(all, "warp"),
                ops(ran)
            );
            answers.warn_role(text, Some(role));
        }
    }
    let warps = stats.roles.iter().flat_map(|r| &r.warps);
    let idle = warps.clone().filter(|w| is_idle(w)).count() as u64;
    let all = warps.count() as u64;
    answers.or_pass(|| match idle {
        0 => "every warp touches memory or gives work to an engine".to_owned(),
        _ => format!(
            "{} of the warps only fill up the warpgroup of a role that moves registers",
            percent(idle, all)
        ),
    })
}

/// Do idle warps only fill up a warpgroup, as setmaxnreg asks for whole ones?
fn stands_by(role: &Role, ran: &RoleStats) -> bool {
    let mut groups = ran.warps.chunks(4);
    role.registers.is_some() && groups.all(|g| !g.iter().all(is_idle))
}
