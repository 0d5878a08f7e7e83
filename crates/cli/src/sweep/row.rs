//! What became of a point.

use super::point::Point;
use super::vary::Vary;
use crate::errors::Failure;
use serde::Serialize;
use serde_json::{Map, Value};
use warpline::bench::statistics::Quartiles;
use warpline::gpu::Footprint;

/// What became of a point.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    /// The values that varied, as they were given.
    #[serde(skip)]
    pub(crate) given: Vec<String>,
    /// The same by option.
    pub(crate) values: Map<String, Value>,
    /// What was asked; none where that was refused.
    pub(crate) problem: Option<Value>,
    /// How it was solved.
    pub(crate) config: Option<Value>,
    /// What a GPU took.
    pub(crate) timed: Option<Timed>,
    /// What the simulator counted.
    pub(crate) counted: Option<Counted>,
    /// Why there is neither.
    pub(crate) failure: Option<Trouble>,
}

/// Times of a point on a GPU.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Timed {
    pub(crate) seconds: Quartiles,
    /// The time by that of the fastest point.
    pub(crate) of_fastest: f64,
    /// Bytes or operations per second, by what binds.
    pub(crate) rate: f64,
    pub(crate) unit: &'static str,
    /// What its kernels need.
    pub(crate) kernels: Vec<Footprint>,
}

/// What the simulator counted at a point, over all kernels.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Counted {
    pub(crate) ctas: u64,
    /// Instructions that warps ran.
    pub(crate) instructions: u64,
    /// Bytes from and to global memory.
    pub(crate) global_bytes: u64,
    pub(crate) bank_conflicts: u64,
    /// Bytes of shared memory of a CTA, the most of any kernel.
    pub(crate) shared_bytes: u32,
}

/// Why a point was neither timed nor counted.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Trouble {
    /// Did it run and go wrong? Else it was refused.
    pub(crate) wrong: bool,
    pub(crate) message: String,
}

impl Row {
    /// Of a point that is still to be run.
    pub(crate) fn new(point: &Point, vary: &[Vary]) -> Self {
        let names = vary.iter().map(|v| v.name.clone());
        let (problem, config, failure) = match &point.work {
            Ok(work) => (Some(work.problem()), Some(work.config()), None),
            Err(e) => (None, None, Some(Trouble::refused(e))),
        };
        Self {
            given: point.values.clone(),
            values: names.zip(point.values.iter().map(|v| number(v))).collect(),
            problem,
            config,
            timed: None,
            counted: None,
            failure,
        }
    }

    /// `stages 3, warps 8`.
    pub(crate) fn name(&self) -> String {
        crate::words::settings(&Value::Object(self.values.clone()))
    }
}

impl Trouble {
    pub(crate) fn refused(why: &impl ToString) -> Self {
        Self {
            wrong: false,
            message: why.to_string(),
        }
    }

    pub(crate) fn wrong(why: &impl ToString) -> Self {
        Self {
            wrong: true,
            message: why.to_string(),
        }
    }

    /// The first line of what there is to say.
    pub(crate) fn line(&self) -> String {
        let kind = if self.wrong { "WRONG" } else { "refused" };
        format!(
            "{kind}: {}",
            self.message.lines().next().unwrap_or_default()
        )
    }
}

/// What is wrong with a sweep: a wrong point, or none that ran.
pub(crate) fn failure(rows: &[Row]) -> Option<Failure> {
    let failed = |row: &&Row| row.failure.is_some();
    let (wrong, refused): (Vec<_>, Vec<_>) = rows
        .iter()
        .filter(failed)
        .partition(|row| row.failure.as_ref().is_some_and(|f| f.wrong));
    let told = |row: &Row| {
        let why = row.failure.as_ref().map(|f| f.message.lines().next());
        format!("{}: {}", row.name(), why.flatten().unwrap_or_default())
    };
    let all = rows.len();
    if let Some(first) = wrong.first() {
        let text = format!(
            "{} of {all} points are wrong; the first, {}",
            wrong.len(),
            told(first)
        );
        return Some(Failure::refused("wrong-result", text));
    }
    let first = refused.first().filter(|_| refused.len() == all)?;
    let text = format!("all {all} points are refused; the first, {}", told(first));
    Some(Failure::input("no-point", text))
}

/// A value as a number, where it is one.
fn number(text: &str) -> Value {
    let number = serde_json::from_str(text).ok().filter(Value::is_number);
    number.unwrap_or_else(|| text.into())
}
