//! Turns of the shared-memory banks beyond the fewest possible.

use crate::case::{Answers, Case};
use crate::finding::Finding;
use crate::lines::{by_line, worst_first};
use crate::words::{percent, ratio};
use warpline_cpu::Traffic;

/// The share of turns beyond the fewest from which a line warns.
///
/// A layout that conflicts does so in every access, and costs at least half as
/// many turns again; a quarter tells it from the rare access that begins
/// elsewhere.
pub const EXTRA_TURNS: f64 = 0.25;

pub(crate) fn look(case: &Case<'_>, mut answers: Answers<'_>) -> Vec<Finding> {
    let stats = match &case.stats {
        Ok(stats) => stats,
        Err(why) => return answers.and_not_looked(why),
    };
    let sites = (stats.sites.iter()).map(|s| (&*s.role, s.frame, s.traffic));
    let sites = sites.filter(|(_, _, t)| t.bank_turns > 0);
    let lines = by_line(sites, |sum: &mut Traffic, t| {
        sum.shared_accesses += t.shared_accesses;
        sum.bank_turns += t.bank_turns;
        sum.bank_conflicts += t.bank_conflicts;
    });
    let [accesses, least, extra] = lines.iter().fold([0; 3], |[a, l, e], line| {
        let t = line.counted;
        [
            a + t.shared_accesses,
            l + t.bank_turns,
            e + t.bank_conflicts,
        ]
    });
    let wanting = |t: &Traffic| ratio(t.bank_conflicts, t.bank_turns) >= EXTRA_TURNS;
    for line in worst_first(lines, wanting, |t| t.bank_conflicts) {
        let t = line.counted;
        let turns = ratio(t.bank_turns + t.bank_conflicts, t.shared_accesses);
        let text = format!(
            "{turns:.1} turns of the banks per access where {:.1} would do, in {} accesses",
            ratio(t.bank_turns, t.shared_accesses),
            t.shared_accesses
        );
        answers.warn(text, line.at, Some(&line.role));
    }
    answers.or_pass(|| match accesses {
        0 => "no thread touches shared memory".to_owned(),
        _ => format!(
            "{accesses} shared accesses take {} more turns of the banks than they must",
            percent(extra, least)
        ),
    })
}
