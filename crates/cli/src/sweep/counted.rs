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
    let count_point = |point: &Point| {
        let mut row = Row::new(point, vary);
        if let Ok(work) = &point.work {
            record(&mut row, run(work.as_ref(), device, &options));
        }
        bar.step();
        row
    };
    points.iter().map(count_point).collect()
}

/// Records the outcome of a point.
fn record(row: &mut Row, result: Result<RunReport, Error>) {
    match result {
        Ok(outcome) if outcome.passed() => row.counted = Some(Counted::of(&outcome)),
        Ok(outcome) => {
            let (failed, total) = (outcome.failed(), outcome.elements());
            let text = format!("{failed} of {total} elements outside tolerance");
            row.failure = Some(PointFailure::wrong_result(&text));
        }
        Err(e @ Error::Fault(_)) => row.failure = Some(PointFailure::wrong_result(&e)),
        Err(e) => row.failure = Some(PointFailure::rejected(&e)),
    }
}

impl Counted {
    fn of(outcome: &RunReport) -> Self {
        let mut total = Self {
            ctas: 0,
            instructions: 0,
            global_bytes: 0,
            bank_conflicts: 0,
            shared_bytes: 0,
        };
        for kernel in &outcome.kernels {
            total.shared_bytes = total.shared_bytes.max(kernel.shared_bytes);
            let Some(stats) = &kernel.stats else { continue };
            let bytes = &stats.bytes;
            total.ctas += stats.ctas;
            total.instructions += stats.roles.iter().map(|r| r.instructions).sum::<u64>();
            total.global_bytes += bytes.global_load
                + bytes.global_store
                + bytes.global_atomic
                + bytes.lane_copy
                + bytes.bulk_load
                + bytes.bulk_store;
            let conflicts = stats.sites.iter().map(|s| s.traffic.bank_conflicts);
            total.bank_conflicts += conflicts.sum::<u64>();
        }
        total
    }
}
