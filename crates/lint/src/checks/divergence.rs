//! Lanes that branches keep from their ops.

use crate::case::{Answers, Case};
use crate::finding::Finding;
use crate::lines::{by_line, worst_first};
use crate::words::{count, percent, ratio};
use warpline_cpu::Split;

/// The share of a role's lanes, over all its ops, from which a branch that
/// keeps them away warns.
///
/// Edges of a problem and the one lane that writes a sum lose a few percent; a
/// branch that loses an eighth is where the role spends its time.
pub const LOST_LANES: f64 = 0.125;

pub(crate) fn look(case: &Case<'_>, mut answers: Answers<'_>) -> Vec<Finding> {
    let stats = match &case.stats {
        Ok(stats) => stats,
        Err(why) => return answers.and_not_looked(why),
    };
    let all_lanes = |role: &str| {
        let ran = stats.roles.iter().filter(|r| r.name == role);
        32 * ran.map(|r| r.instructions).sum::<u64>()
    };
    let sites = stats.branches.iter().map(|b| (&*b.role, b.frame, b.split));
    let lines = by_line(sites, |sum: &mut Split, s| {
        sum.runs += s.runs;
        sum.splits += s.splits;
        sum.ops += s.ops;
        sum.lost_lanes += s.lost_lanes;
    });
    let lost: u64 = lines.iter().map(|l| l.counted.lost_lanes).sum();
    for line in worst_first(lines, |_| true, |s| s.lost_lanes) {
        let (s, all) = (line.counted, all_lanes(&line.role));
        if ratio(s.lost_lanes, all) < LOST_LANES {
            continue;
        }
        let text = format!(
            "lanes went two ways {} of {}; the ops behind ran with {:.1} of 32 lanes, \
             and the role lost {} of its lanes here",
            s.splits,
            count(s.runs, "time"),
            32.0 - ratio(s.lost_lanes, s.ops),
            percent(s.lost_lanes, all)
        );
        answers.warn(text, line.at, Some(&line.role));
    }
    let all = 32 * stats.roles.iter().map(|r| r.instructions).sum::<u64>();
    answers.or_pass(|| match stats.branches.len() {
        0 => "no branch splits a warp".to_owned(),
        _ => format!(
            "branches keep {} of all lanes from their ops",
            percent(lost, all)
        ),
    })
}
