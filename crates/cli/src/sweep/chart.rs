//! The rows of a sweep, as a plot.

use super::row::Row;
use super::vary::Vary;
use crate::plot::{Mark, Plot, Series};

/// The first option across, a series for each combination of the others.
pub(crate) fn plot(
    rows: &[Row],
    vary: &[Vary],
    simulator: bool,
    title: String,
    notes: Vec<String>,
) -> Option<Plot> {
    let (first, others) = vary.split_first()?;
    let mut series: Vec<Series> = Vec::new();
    for row in rows {
        let Some((place, rest)) = row.given.split_first() else {
            continue;
        };
        let name = name(others, rest);
        let at = series.iter().position(|s| s.name == name);
        let at = at.unwrap_or_else(|| {
            let marks = vec![None; first.values.len()];
            series.push(Series { name, marks });
            series.len() - 1
        });
        if let Some(place) = first.values.iter().position(|v| v == place) {
            series[at].marks[place] = mark(row);
        }
    }
    let (up, missing) = match simulator {
        true => (
            "instructions that warps ran, counted by the CPU simulator",
            "refused or wrong: nothing was counted",
        ),
        false => (
            "median time in µs; the upright lines are the middle half",
            "refused or wrong: nothing was timed",
        ),
    };
    Some(Plot {
        title,
        notes,
        across: first.name.clone(),
        up: up.into(),
        places: first.values.clone(),
        series,
        missing: missing.into(),
    })
}

/// `stages 3, warps 8`.
fn name(others: &[Vary], values: &[String]) -> String {
    let others = others.iter().zip(values);
    let all: Vec<_> = others
        .map(|(vary, value)| format!("{} {value}", vary.name))
        .collect();
    all.join(", ")
}

/// Microseconds, or instructions.
fn mark(row: &Row) -> Option<Mark> {
    if let Some(timed) = &row.timed {
        let [value, low, high] = [
            timed.seconds.median,
            timed.seconds.lower,
            timed.seconds.upper,
        ]
        .map(|s| s * 1e6);
        return Some(Mark { value, low, high });
    }
    let value = row.counted?.instructions as f64;
    Some(Mark {
        value,
        low: value,
        high: value,
    })
}
