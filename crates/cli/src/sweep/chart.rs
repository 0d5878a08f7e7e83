//! The rows of a sweep, as a plot.

use super::row::Row;
use super::vary::Vary;
use crate::plot::{Mark, Plot, Series};
use crate::words;
use serde_json::Value;

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
        let values = row.values.iter().filter(|(name, _)| **name != first.name);
        let values: Value = values
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let name = match others {
            [] => first.name.clone(),
            _ => words::settings(&values),
        };
        let at = match series.iter().position(|s| s.name == name) {
            Some(at) => at,
            None => {
                series.push(Series {
                    name,
                    marks: vec![None; first.values.len()],
                });
                series.len() - 1
            }
        };
        let place = row.values.get(&first.name).map(words::plain);
        let place = first.values.iter().position(|v| Some(v) == place.as_ref());
        if let Some(place) = place {
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
