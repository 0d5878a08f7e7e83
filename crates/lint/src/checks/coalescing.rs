//! Sectors of global memory beyond the minimum.

use crate::finding::LintFinding;
use crate::format::{percent, ratio};
use crate::input::{FindingList, LintInput};
use crate::lines::{by_line, worst_first};
use warpline_cpu::MemoryTraffic;

/// The extra sectors per request above which a line may warn.
///
/// A misaligned run of bytes touches one extra sector; a request with more is scattered.
pub const MAX_EXTRA_SECTORS: u64 = 1;

/// The share of extra sectors from which such a line warns.
///
/// A request for several misaligned rows touches an extra sector for each row, and the next request
/// finds most of these in L1.
pub const MAX_EXTRA_SECTOR_SHARE: f64 = 0.25;

pub(crate) fn run(input: &LintInput<'_>, mut findings: FindingList<'_>) -> Vec<LintFinding> {
    let stats = match &input.stats {
        Ok(stats) => stats,
        Err(why) => return findings.skip(why),
    };
    let sites = (stats.sites.iter()).map(|s| (&*s.role, s.frame, s.traffic));
    let sites = sites.filter(|(_, _, t)| t.global_requests > 0);
    let lines = by_line(sites, |sum: &mut MemoryTraffic, t| {
        sum.global_requests += t.global_requests;
        sum.global_sectors += t.global_sectors;
        sum.ideal_sectors += t.ideal_sectors;
    });
    let [requests, touched, least] = lines.iter().fold([0; 3], |[r, s, l], line| {
        let t = line.counted;
        [
            r + t.global_requests,
            s + t.global_sectors,
            l + t.ideal_sectors,
        ]
    });
    let extra = |t: &MemoryTraffic| t.global_sectors - t.ideal_sectors;
    let is_warned = |t: &MemoryTraffic| {
        extra(t) > MAX_EXTRA_SECTORS * t.global_requests
            && ratio(extra(t), t.ideal_sectors) >= MAX_EXTRA_SECTOR_SHARE
    };
    for line in worst_first(lines, is_warned, extra) {
        let t = line.counted;
        let text = format!(
            "{:.1} sectors per request, where {:.1} suffice, in {} requests",
            ratio(t.global_sectors, t.global_requests),
            ratio(t.ideal_sectors, t.global_requests),
            t.global_requests
        );
        findings.warn(text, line.at, Some(&line.role));
    }
    findings.or_pass(|| match requests {
        0 => "no thread accesses global memory".to_owned(),
        _ => format!(
            "{requests} requests to global memory touch {} more sectors than needed",
            percent(touched - least, least)
        ),
    })
}
