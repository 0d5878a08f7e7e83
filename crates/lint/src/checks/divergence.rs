//! Lanes that branches leave idle.

use crate::finding::LintFinding;
use crate::format::{count, percent, ratio};
use crate::input::{FindingList, LintInput};
use crate::lines::{by_line, worst_first};
use warpline_cpu::Divergence;

/// The share of idle lanes, over all ops of a role, from which a branch warns.
///
/// Boundary handling and elected lanes lose a few percent. A branch that loses an eighth is where
/// the role spends its time.
pub const MAX_IDLE_LANES: f64 = 0.125;

pub(crate) fn run(input: &LintInput<'_>, mut findings: FindingList<'_>) -> Vec<LintFinding> {
    let stats = match &input.stats {
        Ok(stats) => stats,
        Err(why) => return findings.skip(why),
    };
    let all_lanes = |role: &str| {
        let ran = stats.roles.iter().filter(|r| r.name == role);
        32 * ran.map(|r| r.instructions).sum::<u64>()
    };
    let sites = stats
        .branches
        .iter()
        .map(|b| (&*b.role, b.frame, b.divergence));
    let lines = by_line(sites, |sum: &mut Divergence, s| {
        sum.executions += s.executions;
        sum.divergent += s.divergent;
        sum.ops += s.ops;
        sum.inactive_lanes += s.inactive_lanes;
    });
    let lost: u64 = lines.iter().map(|l| l.counted.inactive_lanes).sum();
    for line in worst_first(lines, |_| true, |s| s.inactive_lanes) {
        let (s, all) = (line.counted, all_lanes(&line.role));
        if ratio(s.inactive_lanes, all) < MAX_IDLE_LANES {
            continue;
        }
        let text = format!(
            "the branch diverges {} of {}; the ops inside run with {:.1} of 32 lanes, \
             and the role loses {} of its lanes here",
            s.divergent,
            count(s.executions, "time"),
            32.0 - ratio(s.inactive_lanes, s.ops),
            percent(s.inactive_lanes, all)
        );
        findings.warn(text, line.at, Some(&line.role));
    }
    let all = 32 * stats.roles.iter().map(|r| r.instructions).sum::<u64>();
    findings.or_pass(|| match stats.branches.len() {
        0 => "no branch splits a warp".to_owned(),
        _ => format!("branches leave {} of all lanes idle", percent(lost, all)),
    })
}
