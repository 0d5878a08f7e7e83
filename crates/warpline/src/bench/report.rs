//! What comes out.

pub use super::check::Check;
use super::limits::Bound;
use super::sensors::Reading;
use super::statistics::Quartiles;
use super::timer::Sample;
use crate::device::DeviceInfo;
use crate::error::Error;
use crate::gpu::Footprint;
use serde::Serialize;
use serde_json::Value;
use warpline_kernels::{AnyWork, Cost};

/// A whole measurement.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct BenchReport {
    /// Where it ran.
    pub device: DeviceInfo,
    /// Drew the inputs and the orders.
    pub seed: u64,
    /// Timed launches of each entry.
    pub rounds: u32,
    /// Bytes that were read before each, so that the level-2 cache was cold.
    pub flush_bytes: u64,
    /// Why there are no clocks and no power, if so.
    pub no_sensors: Option<String>,
    /// One after the other.
    pub heats: Vec<HeatReport>,
}

impl BenchReport {
    /// Was every contender right?
    pub fn passed(&self) -> bool {
        self.rows().all(|(_, row)| row.failure.is_none())
    }

    /// All rows, each with its heat.
    pub fn rows(&self) -> impl Iterator<Item = (&HeatReport, &Row)> {
        let heats = self.heats.iter();
        heats.flat_map(|heat| heat.rows.iter().map(move |row| (heat, row)))
    }
}

/// Contenders measured against each other in the same rounds.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct HeatReport {
    /// The family's name.
    pub family: &'static str,
    /// What was asked.
    pub problem: Value,
    /// What it costs at least.
    pub cost: Cost,
    /// What binds it at best.
    pub bound: Bound,
    /// The limit, measured in the same rounds; none where nothing was timed
    /// or the limit cannot be measured.
    pub limit: Option<Measured>,
    /// The limit alone for more than a second, if that was asked for.
    pub limit_sustained: Option<Measured>,
    /// Why the limit could not be measured, if so.
    pub no_limit: Option<String>,
    /// The contender that was entered twice.
    pub twice: Option<Twice>,
    /// The contenders, fastest first; those that were not timed last. Steps
    /// stay in their order.
    pub rows: Vec<Row>,
}

impl HeatReport {
    /// Nothing can be timed, for this reason.
    pub(crate) fn fail(&mut self, why: &Error) {
        for row in &mut self.rows {
            row.failure.get_or_insert_with(|| why.to_string());
        }
    }

    /// The fastest first; rows without a time go last.
    pub(crate) fn rank(&mut self) {
        let time = |row: &Row| row.median_s().unwrap_or(f64::INFINITY);
        self.rows.sort_by(|a, b| time(a).total_cmp(&time(b)));
    }

    /// What each row gained over the one before.
    pub(crate) fn state_gains(&mut self) {
        let times: Vec<_> = self.rows.iter().map(Row::median_s).collect();
        for (row, pair) in self.rows.iter_mut().skip(1).zip(times.windows(2)) {
            row.gain = pair[0].zip(pair[1]).map(|(before, now)| before / now);
        }
    }
}

/// Two medians of the same kernel in the same rounds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct Twice {
    /// The medians, in seconds.
    pub medians_s: [f64; 2],
    /// How far they lie apart, as a share of the lesser.
    pub apart: f64,
}

impl Twice {
    /// Of two medians.
    pub fn new(a: f64, b: f64) -> Self {
        Self {
            medians_s: [a, b],
            apart: a.max(b) / a.min(b) - 1.0,
        }
    }
}

/// One contender.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Row {
    /// How the problem is solved.
    pub config: Value,
    /// Is it the first that was named: the family's own choice, unless options fix another?
    /// None of steps is.
    pub chosen: bool,
    /// What its kernels need, as the driver compiled them; none where it did not.
    pub kernels: Vec<Footprint>,
    /// What its output was compared with.
    pub check: Option<Check>,
    /// Why it was not timed: it cannot be built, or is wrong.
    pub failure: Option<String>,
    /// Its times.
    pub measured: Option<Measured>,
    /// Its rate as a share of the limit's.
    pub share: Option<f64>,
    /// Its rate over that of the row before, where rows are steps.
    pub gain: Option<f64>,
    /// Its times alone for more than a second, if that was asked for.
    pub sustained: Option<Measured>,
}

impl Row {
    /// Of work that is still to be measured.
    pub(crate) fn new(work: &dyn AnyWork, chosen: bool) -> Self {
        Self {
            config: work.config(),
            chosen,
            kernels: Vec::new(),
            check: None,
            failure: None,
            measured: None,
            share: None,
            gain: None,
            sustained: None,
        }
    }

    /// The median time; none where it was not timed.
    pub fn median_s(&self) -> Option<f64> {
        self.measured.as_ref().map(|m| m.seconds.median)
    }
}

/// Times, and what follows from them.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct Measured {
    /// Seconds of one launch.
    pub seconds: Quartiles,
    /// Bytes or operations per second at the median, by what binds.
    pub rate: f64,
    /// Clocks and power.
    #[serde(flatten)]
    pub reading: Reading,
}

impl Measured {
    /// Of samples of work with this cost; none of no samples.
    pub(crate) fn new(samples: &[Sample], cost: &Cost, bound: Bound) -> Option<Self> {
        let seconds = Quartiles::new(samples.iter().map(|s| s.seconds))?;
        let readings: Vec<Reading> = samples.iter().map(|s| s.reading).collect();
        Some(Self {
            rate: bound.rate(cost, seconds.median),
            seconds,
            reading: Reading::median(&readings),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_what_the_median_gives() {
        let sample = |seconds| Sample {
            seconds,
            reading: Reading::default(),
        };
        let cost = Cost {
            flops: 0.0,
            bytes: 12e9,
        };
        let all = [sample(4.0), sample(3.0), sample(1.0)];
        let measured = Measured::new(&all, &cost, Bound::Memory).unwrap();
        assert_eq!((measured.seconds.median, measured.rate), (3.0, 4e9));
        assert!(Measured::new(&[], &cost, Bound::Memory).is_none());
        let json = serde_json::to_value(&measured).unwrap();
        assert_eq!(json["seconds"]["median"], 3.0);
        assert!(json["sm_mhz"].is_null() && json.get("watts").is_some());
    }

    #[test]
    fn a_step_gains_what_the_one_before_took_longer() {
        let row = |ms: Option<f64>| Row {
            measured: ms.map(|ms| Measured {
                seconds: Quartiles::new([ms * 1e-3]).unwrap(),
                rate: 1.0,
                reading: Reading::default(),
            }),
            config: Value::Null,
            chosen: false,
            kernels: Vec::new(),
            check: None,
            failure: None,
            share: None,
            gain: None,
            sustained: None,
        };
        let times = [Some(3.0), Some(1.5), None, Some(1.0), Some(2.0)];
        let mut report = HeatReport {
            family: "ladder",
            problem: Value::Null,
            cost: Cost {
                flops: 1.0,
                bytes: 0.0,
            },
            bound: Bound::Compute,
            limit: None,
            limit_sustained: None,
            no_limit: None,
            twice: None,
            rows: times.map(row).into(),
        };
        report.state_gains();
        let gains: Vec<_> = report.rows.iter().map(|row| row.gain).collect();
        assert_eq!(gains, [None, Some(2.0), None, None, Some(0.5)]);
        report.rank();
        assert_eq!(report.rows[0].median_s(), Some(1e-3));
        assert!(report.rows[4].measured.is_none());
    }

    #[test]
    fn two_medians_of_one_kernel_lie_apart_by_a_share_of_the_lesser() {
        assert_eq!(Twice::new(2.0, 2.5).apart, 0.25);
        assert_eq!(Twice::new(2.5, 2.0).apart, 0.25);
        assert_eq!(Twice::new(3.0, 3.0).apart, 0.0);
    }
}
