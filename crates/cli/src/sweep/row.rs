//! The result of a point.

use super::point::Point;
use super::vary::Vary;
use crate::errors::Failure;
use serde::Serialize;
use serde_json::{Map, Value};
use warpline::bench::statistics::Quartiles;
use warpline::gpu::Footprint;

/// The result of a point.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    /// The varied values as text.
    #[serde(skip)]
    pub(crate) value_texts: Vec<String>,
    /// The varied values by option.
    pub(crate) values: Map<String, Value>,
    /// The problem; none if it was rejected.
    pub(crate) problem: Option<Value>,
    /// The config; none if the problem was rejected.
    pub(crate) config: Option<Value>,
    /// The measurement on a GPU.
    pub(crate) timed: Option<Timed>,
    /// The counters of the CPU executor.
    pub(crate) counted: Option<Counted>,
    /// The reason that the point has neither times nor counters.
    pub(crate) failure: Option<PointFailure>,
}

/// Times of a point on a GPU.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Timed {
    pub(crate) seconds: Quartiles,
    /// The median time divided by that of the fastest point.
    pub(crate) of_fastest: f64,
    /// Bytes per second if memory-bound, FLOP/s if compute-bound.
    pub(crate) rate: f64,
    pub(crate) unit: &'static str,
    /// The resources of its kernels.
    pub(crate) kernels: Vec<Footprint>,
}

/// The CPU executor's counters of a point, summed over all kernels.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Counted {
    pub(crate) ctas: u64,
    /// Warp instructions.
    pub(crate) instructions: u64,
    /// Bytes from and to global memory.
    pub(crate) global_bytes: u64,
    pub(crate) bank_conflicts: u64,
    /// Bytes of shared memory per CTA, the maximum over the kernels.
    pub(crate) shared_bytes: u32,
}

/// The reason that a point has neither times nor counters.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PointFailure {
    /// Whether the point ran and its result is wrong; otherwise it was rejected.
    #[serde(rename = "wrong")]
    pub(crate) is_wrong_result: bool,
    pub(crate) message: String,
}

impl Row {
    /// Creates the row of a point before it runs.
    pub(crate) fn new(point: &Point, vary: &[Vary]) -> Self {
        let names = vary.iter().map(|v| v.name.clone());
        let (problem, config, failure) = match &point.work {
            Ok(work) => (Some(work.problem()), Some(work.config()), None),
            Err(e) => (None, None, Some(PointFailure::rejected(e))),
        };
        Self {
            value_texts: point.values.clone(),
            values: names.zip(point.values.iter().map(|v| number(v))).collect(),
            problem,
            config,
            timed: None,
            counted: None,
            failure,
        }
    }

    /// Formats the values: `stages 3, warps 8`.
    pub(crate) fn name(&self) -> String {
        crate::display::settings(&Value::Object(self.values.clone()))
    }
}

impl PointFailure {
    pub(crate) fn rejected(why: &impl ToString) -> Self {
        Self {
            is_wrong_result: false,
            message: why.to_string(),
        }
    }

    pub(crate) fn wrong_result(why: &impl ToString) -> Self {
        Self {
            is_wrong_result: true,
            message: why.to_string(),
        }
    }

    /// Formats the first line of the reason.
    pub(crate) fn line(&self) -> String {
        let kind = if self.is_wrong_result {
            "FAIL"
        } else {
            "rejected"
        };
        format!(
            "{kind}: {}",
            self.message.lines().next().unwrap_or_default()
        )
    }
}

/// Describes the failure of a sweep: a wrong result, or every point rejected.
pub(crate) fn failure(rows: &[Row]) -> Option<Failure> {
    let has_failed = |row: &&Row| row.failure.is_some();
    let (wrong, rejected): (Vec<_>, Vec<_>) = rows
        .iter()
        .filter(has_failed)
        .partition(|row| row.failure.as_ref().is_some_and(|f| f.is_wrong_result));
    let describe = |row: &Row| {
        let why = row.failure.as_ref().map(|f| f.message.lines().next());
        format!("{}: {}", row.name(), why.flatten().unwrap_or_default())
    };
    let all = rows.len();
    if let Some(first) = wrong.first() {
        let text = format!(
            "{} of {all} points FAIL; the first, {}",
            wrong.len(),
            describe(first)
        );
        return Some(Failure::bad_result("wrong-result", text));
    }
    let first = rejected.first().filter(|_| rejected.len() == all)?;
    let text = format!(
        "all {all} points are rejected; the first, {}",
        describe(first)
    );
    Some(Failure::bad_input("no-point", text))
}

/// Returns the value as a JSON number if it is one, else as a string.
fn number(text: &str) -> Value {
    let number = serde_json::from_str(text).ok().filter(Value::is_number);
    number.unwrap_or_else(|| text.into())
}
