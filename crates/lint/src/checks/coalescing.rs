//! Sectors of global memory beyond the fewest possible.

use crate::case::{Answers, Case};
use crate::finding::Finding;
use crate::lines::{by_line, worst_first};
use crate::words::{percent, ratio};
use warpline_cpu::Traffic;

/// Sectors per request beyond the fewest, above which a line may warn.
///
/// A run of bytes that begins anywhere touches one sector more than it needs;
/// what touches more than that is scattered.
pub const SPARE_SECTORS: u64 = 1;

/// The share of sectors beyond the fewest from which it does.
///
/// Requests for several rows that begin anywhere touch a sector more for each;
/// the next request finds most of those in the L1.
pub const SPARE_SHARE: f64 = 0.25;

pub(crate) fn look(case: &Case<'_>, mut answers: Answers<'_>) -> Vec<Finding> {
    let stats = match &case.stats {
        Ok(stats) => stats,
        Err(why) => return answers.and_not_looked(why),
    };
    let sites = (stats.sites.iter()).map(|s| (&*s.role, s.frame, s.traffic));
    let sites = sites.filter(|(_, _, t)| t.global_requests > 0);
    let lines = by_line(sites, |sum: &mut Traffic, t| {
        sum.global_requests += t.global_requests;
        sum.global_sectors += t.global_sectors;
        sum.least_sectors += t.least_sectors;
    });
    let [requests, touched, least] = lines.iter().fold([0; 3], |[r, s, l], line| {
        let t = line.counted;
        [
            r + t.global_requests,
            s + t.global_sectors,
            l + t.least_sectors,
        ]
    });
    let spare = |t: &Traffic| t.global_sectors - t.least_sectors;
    let wanting = |t: &Traffic| {
        spare(t) > SPARE_SECTORS * t.global_requests
            && ratio(spare(t), t.least_sectors) >= SPARE_SHARE
    };
    for line in worst_first(lines, wanting, spare) {
        let t = line.counted;
        let text = format!(
            "{:.1} sectors per request where {:.1} would do, in {} requests",
            ratio(t.global_sectors, t.global_requests),
            ratio(t.least_sectors, t.global_requests),
            t.global_requests
        );
        answers.warn(text, line.at, Some(&line.role));
    }
    answers.or_pass(|| match requests {
        0 => "no thread touches global memory".to_owned(),
        _ => format!(
            "{requests} global requests touch {} more sectors than they must",
            percent(touched - least, least)
        ),
    })
}
