//! Shared-memory wavefronts beyond the minimum.

use crate::finding::LintFinding;
use crate::format::{percent, ratio};
use crate::input::{FindingList, LintInput};
use crate::lines::{by_line, worst_first};
use warpline_cpu::MemoryTraffic;

/// The share of extra wavefronts from which a line warns.
///
/// A layout with conflicts has them in every access, and costs at least half as many wavefronts
/// again. A quarter separates it from single misaligned accesses.
pub const MAX_EXTRA_WAVEFRONTS: f64 = 0.25;

pub(crate) fn run(input: &LintInput<'_>, mut findings: FindingList<'_>) -> Vec<LintFinding> {
    let stats = match &input.stats {
        Ok(stats) => stats,
        Err(why) => return findings.skip(why),
    };
    let sites = (stats.sites.iter()).map(|s| (&*s.role, s.frame, s.traffic));
    let sites = sites.filter(|(_, _, t)| t.ideal_wavefronts > 0);
    let lines = by_line(sites, |sum: &mut MemoryTraffic, t| {
        sum.shared_accesses += t.shared_accesses;
        sum.ideal_wavefronts += t.ideal_wavefronts;
        sum.bank_conflicts += t.bank_conflicts;
    });
    let [accesses, least, extra] = lines.iter().fold([0; 3], |[a, l, e], line| {
        let t = line.counted;
        [
            a + t.shared_accesses,
            l + t.ideal_wavefronts,
            e + t.bank_conflicts,
        ]
    });
    let is_warned =
        |t: &MemoryTraffic| ratio(t.bank_conflicts, t.ideal_wavefronts) >= MAX_EXTRA_WAVEFRONTS;
    for line in worst_first(lines, is_warned, |t| t.bank_conflicts) {
        let t = line.counted;
        let wavefronts = ratio(t.ideal_wavefronts + t.bank_conflicts, t.shared_accesses);
        let text = format!(
            "{wavefronts:.1} wavefronts per access, where {:.1} suffice, in {} accesses",
            ratio(t.ideal_wavefronts, t.shared_accesses),
            t.shared_accesses
        );
        findings.warn(text, line.at, Some(&line.role));
    }
    findings.or_pass(|| match accesses {
        0 => "no thread accesses shared memory".to_owned(),
        _ => format!(
            "{accesses} shared-memory accesses take {} more wavefronts than needed",
            percent(extra, least)
        ),
    })
}
