//! The report of a benchmark.

pub use super::check::Check;
use super::limits::RooflineBound;
use super::sensors::SensorReading;
use super::statistics::Quartiles;
use super::timer::Sample;
use crate::device::DeviceInfo;
use crate::error::Error;
use crate::gpu::Footprint;
use serde::Serialize;
use serde_json::Value;
use warpline_kernels::{AnyWorkload, Cost};

/// The report of a benchmark.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct BenchReport {
    /// The GPU.
    pub device: DeviceInfo,
    /// The seed of the inputs and of the order in each round.
    pub seed: u64,
    /// The number of timed launches per candidate.
    pub rounds: u32,
    /// The number of bytes read before each launch to flush the L2 cache.
    pub flush_bytes: u64,
    /// The reason why clocks and power are unavailable, if they are.
    pub no_sensors: Option<String>,
    /// The groups, in the order of measurement.
    pub groups: Vec<BenchGroupReport>,
}

impl BenchReport {
    /// Returns whether no candidate failed.
    pub fn passed(&self) -> bool {
        self.rows().all(|(_, row)| row.failure.is_none())
    }

    /// Iterates over all rows, each with its group.
    pub fn rows(&self) -> impl Iterator<Item = (&BenchGroupReport, &BenchRow)> {
        let groups = self.groups.iter();
        groups.flat_map(|group| group.rows.iter().map(move |row| (group, row)))
    }
}

/// Candidates that were measured in the same rounds.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct BenchGroupReport {
    /// The name of the family.
    pub family: &'static str,
    /// The problem.
    pub problem: Value,
    /// The minimum cost.
    pub cost: Cost,
    /// Memory bound or compute bound.
    pub bound: RooflineBound,
    /// The limit, measured in the same rounds; `None` if nothing was timed or the limit cannot be
    /// measured.
    pub limit: Option<Measurement>,
    /// The limit in a sustained run, if requested.
    pub limit_sustained: Option<Measurement>,
    /// The reason why the limit could not be measured, if it could not.
    pub no_limit: Option<String>,
    /// The noise estimate of the first candidate, which is timed twice per round.
    pub noise: Option<NoiseEstimate>,
    /// The candidates, fastest first; candidates without a time are last. Steps keep their order.
    pub rows: Vec<BenchRow>,
}

impl BenchGroupReport {
    /// Marks all rows without a failure as failed.
    pub(crate) fn fail(&mut self, why: &Error) {
        for row in &mut self.rows {
            row.failure.get_or_insert_with(|| why.to_string());
        }
    }

    /// Sorts the rows, fastest first; rows without a time are last.
    pub(crate) fn rank(&mut self) {
        let time = |row: &BenchRow| row.median_s().unwrap_or(f64::INFINITY);
        self.rows.sort_by(|a, b| time(a).total_cmp(&time(b)));
    }

    /// Sets the speedup of each row over the previous one.
    pub(crate) fn set_step_speedups(&mut self) {
        let times: Vec<_> = self.rows.iter().map(BenchRow::median_s).collect();
        for (row, pair) in self.rows.iter_mut().skip(1).zip(times.windows(2)) {
            row.speedup = pair[0]
                .zip(pair[1])
                .map(|(previous, current)| previous / current);
        }
    }
}

/// Two medians of the same candidate in the same rounds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct NoiseEstimate {
    /// The medians, in seconds.
    pub medians_s: [f64; 2],
    /// Their difference divided by the smaller one.
    pub relative_difference: f64,
}

impl NoiseEstimate {
    /// Returns the estimate from two medians.
    pub fn new(a: f64, b: f64) -> Self {
        Self {
            medians_s: [a, b],
            relative_difference: a.max(b) / a.min(b) - 1.0,
        }
    }
}

/// One candidate of a group.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct BenchRow {
    /// The config.
    pub config: Value,
    /// Whether this is the first candidate: the heuristic's config, unless options fix another. False
    /// for steps.
    pub from_heuristic: bool,
    /// The resources of the compiled kernels; empty if the candidate was not compiled.
    pub kernels: Vec<Footprint>,
    /// The comparison with the reference.
    pub check: Option<Check>,
    /// The reason why the candidate was not timed: a build error or a wrong result.
    pub failure: Option<String>,
    /// The timings.
    pub measured: Option<Measurement>,
    /// The rate divided by the rate of the limit.
    pub limit_fraction: Option<f64>,
    /// The speedup over the previous row, if rows are steps.
    pub speedup: Option<f64>,
    /// The timings of a sustained run, if requested.
    pub sustained: Option<Measurement>,
}

impl BenchRow {
    /// Returns a row without measurements.
    pub(crate) fn new(work: &dyn AnyWorkload, from_heuristic: bool) -> Self {
        Self {
            config: work.config(),
            from_heuristic,
            kernels: Vec::new(),
            check: None,
            failure: None,
            measured: None,
            limit_fraction: None,
            speedup: None,
            sustained: None,
        }
    }

    /// Returns the median seconds; `None` if the candidate was not timed.
    pub fn median_s(&self) -> Option<f64> {
        self.measured.as_ref().map(|m| m.seconds.median)
    }
}

/// Timings, with the rate and the sensor readings.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct Measurement {
    /// The seconds of one launch.
    pub seconds: Quartiles,
    /// The rate at the median: bytes per second if memory bound, operations per second if compute
    /// bound.
    pub rate: f64,
    /// The median clocks and power.
    #[serde(flatten)]
    pub reading: SensorReading,
}

impl Measurement {
    /// Summarizes the samples of a workload with this cost; `None` for no samples.
    pub(crate) fn new(samples: &[Sample], cost: &Cost, bound: RooflineBound) -> Option<Self> {
        let seconds = Quartiles::new(samples.iter().map(|s| s.seconds))?;
        let readings: Vec<SensorReading> = samples.iter().map(|s| s.reading).collect();
        Some(Self {
            rate: bound.rate(cost, seconds.median),
            seconds,
            reading: SensorReading::median(&readings),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_computed_from_the_median() {
        let sample = |seconds| Sample {
            seconds,
            reading: SensorReading::default(),
        };
        let cost = Cost {
            flops: 0.0,
            bytes: 12e9,
        };
        let all = [sample(4.0), sample(3.0), sample(1.0)];
        let measured = Measurement::new(&all, &cost, RooflineBound::Memory).unwrap();
        assert_eq!((measured.seconds.median, measured.rate), (3.0, 4e9));
        assert!(Measurement::new(&[], &cost, RooflineBound::Memory).is_none());
        let json = serde_json::to_value(&measured).unwrap();
        assert_eq!(json["seconds"]["median"], 3.0);
        assert!(json["sm_mhz"].is_null() && json.get("watts").is_some());
    }

    #[test]
    fn the_speedup_of_a_step_is_over_the_previous_row() {
        let row = |ms: Option<f64>| BenchRow {
            measured: ms.map(|ms| Measurement {
                seconds: Quartiles::new([ms * 1e-3]).unwrap(),
                rate: 1.0,
                reading: SensorReading::default(),
            }),
            config: Value::Null,
            from_heuristic: false,
            kernels: Vec::new(),
            check: None,
            failure: None,
            limit_fraction: None,
            speedup: None,
            sustained: None,
        };
        let times = [Some(3.0), Some(1.5), None, Some(1.0), Some(2.0)];
        let mut report = BenchGroupReport {
            family: "ladder",
            problem: Value::Null,
            cost: Cost {
                flops: 1.0,
                bytes: 0.0,
            },
            bound: RooflineBound::Compute,
            limit: None,
            limit_sustained: None,
            no_limit: None,
            noise: None,
            rows: times.map(row).into(),
        };
        report.set_step_speedups();
        let speedups: Vec<_> = report.rows.iter().map(|row| row.speedup).collect();
        assert_eq!(speedups, [None, Some(2.0), None, None, Some(0.5)]);
        report.rank();
        assert_eq!(report.rows[0].median_s(), Some(1e-3));
        assert!(report.rows[4].measured.is_none());
    }

    #[test]
    fn the_noise_is_relative_to_the_smaller_median() {
        assert_eq!(NoiseEstimate::new(2.0, 2.5).relative_difference, 0.25);
        assert_eq!(NoiseEstimate::new(2.5, 2.0).relative_difference, 0.25);
        assert_eq!(NoiseEstimate::new(3.0, 3.0).relative_difference, 0.0);
    }
}
