//! The results of a sweep as a plot.

use super::row::Row;
use super::vary::Vary;
use crate::plot::{Mark, Plot, Series};

/// Plots the first option on the x axis, with one series per combination of the others.
pub(crate) fn plot(
    rows: &[Row],
    vary: &[Vary],
    on_cpu: bool,
    title: String,
    notes: Vec<String>,
) -> Option<Plot> {
    let (first, others) = vary.split_first()?;
    let mut series: Vec<Series> = Vec::new();
    for row in rows {
        let Some((value, rest)) = row.value_texts.split_first() else {
            continue;
        };
        let name = name(others, rest);
        let index = series.iter().position(|s| s.name == name);
        let index = index.unwrap_or_else(|| {
            let marks = vec![None; first.values.len()];
            series.push(Series { name, marks });
            series.len() - 1
        });
        if let Some(value) = first.values.iter().position(|v| v == value) {
            series[index].marks[value] = mark(row);
        }
    }
    let (y_label, missing_label) = match on_cpu {
        true => (
            "warp instructions, counted by the CPU executor",
            "rejected or FAIL: no counters",
        ),
        false => (
            "median time in µs; vertical bars: interquartile range",
            "rejected or FAIL: not timed",
        ),
    };
    Some(Plot {
        title,
        notes,
        x_label: first.name.clone(),
        y_label: y_label.into(),
        x_values: first.values.clone(),
        series,
        missing_label: missing_label.into(),
    })
}

/// Formats the name of a series: `stages 3, warps 8`.
fn name(others: &[Vary], values: &[String]) -> String {
    let others = others.iter().zip(values);
    let settings: Vec<_> = others
        .map(|(vary, value)| format!("{} {value}", vary.name))
        .collect();
    settings.join(", ")
}

/// Returns the plotted value: microseconds on a GPU, instructions on the CPU executor.
fn mark(row: &Row) -> Option<Mark> {
    if let Some(timed) = &row.timed {
        let [value, low, high] =
            [timed.seconds.median, timed.seconds.q1, timed.seconds.q3].map(|s| s * 1e6);
        return Some(Mark { value, low, high });
    }
    let value = row.counted?.instructions as f64;
    Some(Mark {
        value,
        low: value,
        high: value,
    })
}
