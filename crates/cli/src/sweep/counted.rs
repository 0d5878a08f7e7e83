//! Runs points on the CPU executor, compares them with the reference and reads the counters.

use super::point::Point;
use super::row::{Counted, PointFailure, Row};
use super::vary::Vary;
use crate::progress::Bar;
use warpline::{Device, Error, RunOptions, RunReport, run};

/// Runs every point once and compares it with the reference.
pub(crate) fn count(points: &[Point], vary: &[Vary], device: &Device, seed: u64) -> Vec<Row> {
    let mut options = RunOptions::default();
    options.seed = seed;
    options.simulate = true;
    let bar = Bar::new();
    bar.count("running", points.len());
    let one = |point: &Point| {
        let mut row = Row::new(point, vary);
        if let Ok(work) = &point.work {
            record(&mut row, run(work.as_ref(), device, &options));
        }
        bar.step();
        row
    };
    points.iter().map(one).collect()
}

/// Records the outcome of a point.
fn record(row: &mut Row, found: Result<RunReport, Error>) {
    match found {
        Ok(outcome) if outcome.passed() => row.counted = Some(Counted::of(&outcome)),
        Ok(outcome) => {
            let (failed, all) = (outcome.failed(), outcome.elements());
            let text = format!("{failed} of {all} elements outside tolerance");
            row.failure = Some(PointFailure::wrong_result(&text));
        }
        Err(e @ Error::Fault(_)) => row.failure = Some(PointFailure::wrong_result(&e)),
        Err(e) => row.failure = Some(PointFailure::rejected(&e)),
    }
}

impl Counted {
    fn of(outcome: &RunReport) -> Self {
        let mut all = Self {
            ctas: 0,
            instructions: 0,
            global_bytes: 0,
            bank_conflicts: 0,
            shared_bytes: 0,
        };
        for kernel in &outcome.kernels {
            all.shared_bytes = all.shared_bytes.max(kernel.shared_bytes);
            let Some(stats) = &kernel.stats else { continue };
            let bytes = &stats.bytes;
            all.ctas += stats.ctas;
            all.instructions += stats.roles.iter().map(|r| r.instructions).sum::<u64>();
            all.global_bytes += bytes.global_load
                + bytes.global_store
                + bytes.global_atomic
                + bytes.lane_copy
                + bytes.bulk_load
                + bytes.bulk_store;
            let conflicts = stats.sites.iter().map(|s| s.traffic.bank_conflicts);
            all.bank_conflicts += conflicts.sum::<u64>();
        }
        all
    }
}
