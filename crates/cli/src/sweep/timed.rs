//! Measures points on a GPU.

use super::point::Point;
use super::row::{PointFailure, Row, Timed};
use super::vary::Vary;
use crate::errors::Failure;
use warpline::Device;
use warpline::bench::{self, BenchGroup, BenchGroupReport, BenchOptions, BenchReport};
use warpline_kernels::AnyWorkload;

/// Points of one problem; they are timed in the same rounds.
struct Group {
    /// The row index of each point.
    rows: Vec<usize>,
    works: Vec<Box<dyn AnyWorkload>>,
}

/// Compares every point with the reference and times those that pass; points of one
/// problem are timed in the same rounds.
pub(crate) fn measure(
    points: Vec<Point>,
    vary: &[Vary],
    device: &Device,
    options: &BenchOptions,
) -> Result<(Vec<Row>, BenchReport), Failure> {
    let mut rows: Vec<Row> = points.iter().map(|p| Row::new(p, vary)).collect();
    let mut groups: Vec<Group> = Vec::new();
    for (i, point) in points.into_iter().enumerate() {
        let Ok(work) = point.work else { continue };
        let has_same_problem = |g: &&mut Group| g.works[0].problem() == work.problem();
        match groups.iter_mut().find(has_same_problem) {
            Some(group) => {
                group.rows.push(i);
                group.works.push(work);
            }
            None => groups.push(Group {
                rows: vec![i],
                works: vec![work],
            }),
        }
    }
    let (mut bench_groups, mut rows_of_groups) = (Vec::new(), Vec::new());
    for group in groups {
        // Steps stay in their order.
        bench_groups.extend(BenchGroup::new(group.works).map(BenchGroup::as_steps));
        rows_of_groups.push(group.rows);
    }
    let report = bench::bench(&bench_groups, None, device, options)?;
    for (group, indices) in report.groups.iter().zip(&rows_of_groups) {
        for (bench_row, &index) in group.rows.iter().zip(indices) {
            record(&mut rows[index], group, bench_row);
        }
    }
    let times = rows
        .iter()
        .filter_map(|row| Some(row.timed.as_ref()?.seconds.median));
    let fastest = times.fold(f64::INFINITY, f64::min);
    for timed in rows.iter_mut().filter_map(|row| row.timed.as_mut()) {
        timed.of_fastest = timed.seconds.median / fastest;
    }
    Ok((rows, report))
}

/// Records the measurement of a point.
fn record(row: &mut Row, group: &BenchGroupReport, bench_row: &bench::BenchRow) {
    let check = bench_row.check.as_ref();
    row.failure = bench_row.failure.as_ref().map(|why| match check {
        Some(check) if !check.passed() => PointFailure::wrong_result(why),
        _ => PointFailure::rejected(why),
    });
    row.timed = bench_row.measured.as_ref().map(|measured| Timed {
        seconds: measured.seconds,
        of_fastest: 1.0,
        rate: measured.rate,
        unit: group.bound.unit(),
        kernels: bench_row.kernels.clone(),
    });
}
