//! Points on a GPU: in the rounds of a measurement.

use super::point::Point;
use super::row::{Row, Timed, Trouble};
use super::vary::Vary;
use crate::errors::Failure;
use warpline::Device;
use warpline::bench::{self, BenchOptions, BenchReport, Heat, HeatReport};
use warpline_kernels::AnyWork;

/// Points of one problem, which are timed in the same rounds.
struct Group {
    /// Their rows.
    rows: Vec<usize>,
    works: Vec<Box<dyn AnyWork>>,
}

/// Checks every point and times those that are right; points of one problem
/// in the same rounds.
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
        let same = |g: &&mut Group| g.works[0].problem() == work.problem();
        match groups.iter_mut().find(same) {
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
    let (mut heats, mut places) = (Vec::new(), Vec::new());
    for group in groups {
        // Steps stay in their order.
        heats.extend(Heat::new(group.works).map(Heat::in_steps));
        places.push(group.rows);
    }
    let report = bench::bench(&heats, None, device, options)?;
    for (heat, places) in report.heats.iter().zip(&places) {
        for (found, &place) in heat.rows.iter().zip(places) {
            take(&mut rows[place], heat, found);
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

/// What was found at a point.
fn take(row: &mut Row, heat: &HeatReport, found: &bench::Row) {
    let checked = found.check.as_ref();
    row.failure = found.failure.as_ref().map(|why| match checked {
        Some(check) if !check.passed() => Trouble::wrong(why),
        _ => Trouble::refused(why),
    });
    row.timed = found.measured.as_ref().map(|measured| Timed {
        seconds: measured.seconds,
        of_fastest: 1.0,
        rate: measured.rate,
        unit: heat.bound.unit(),
        kernels: found.kernels.clone(),
    });
}
