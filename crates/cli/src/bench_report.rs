//! The report of `bench`.

use crate::{display, report};
use comfy_table::ColumnConstraint;
use serde_json::Value;
use warpline::bench::report::{BenchGroupReport, BenchReport, BenchRow, Measurement};

const HEADER: [&str; 12] = [
    "family",
    "dtype",
    "problem",
    "config",
    "median time",
    "spread",
    "rate",
    "speedup",
    "of limit",
    "limit",
    "SM MHz",
    "W",
];
/// The column of the speedup over the previous step; only step-by-step suites have it.
const SPEEDUP: usize = 7;

/// Formats the table of all rows, the failures and the method.
pub(crate) fn text(bench: &BenchReport) -> String {
    let mut table = report::table(HEADER);
    for (group, row) in bench.rows() {
        table.add_row(cells(group, row, "", &row.measured, &group.limit));
        if row.sustained.is_some() {
            let (measured, limit) = (&row.sustained, &group.limit_sustained);
            table.add_row(cells(group, row, " (sustained)", measured, limit));
        }
    }
    if !bench.rows().any(|(_, row)| row.speedup.is_some()) {
        let hidden = ColumnConstraint::Hidden;
        table.column_mut(SPEEDUP).map(|c| c.set_constraint(hidden));
    }
    let failures = bench.rows().filter_map(|(group, row)| {
        let config = display::settings(&row.config);
        let why = row.failure.as_ref()?;
        Some(format!("not timed: {}, {config}: {why}\n", group.family))
    });
    let failures: String = failures.collect();
    format!("{}\n{failures}\n{}", table.trim_fmt(), notes(bench))
}

/// Formats one line of the table; `note` follows the config.
fn cells(
    group: &BenchGroupReport,
    row: &BenchRow,
    note: &str,
    measured: &Option<Measurement>,
    limit: &Option<Measurement>,
) -> [String; 12] {
    let (measured, limit) = (measured.as_ref(), limit.as_ref());
    let (dtype, problem) = split(&group.problem);
    let selected = match row.from_heuristic && group.rows.len() > 1 {
        true => " (heuristic)",
        false => "",
    };
    let config = format!("{}{selected}{note}", display::settings(&row.config));
    let unit = group.bound.unit();
    let rate = |m: &Measurement| format!("{}{unit}", display::si(m.rate));
    let speedup = row.speedup.filter(|_| note.is_empty());
    let share = measured.zip(limit).map(|(m, l)| m.rate / l.rate);
    let or_dash = |text: Option<String>| text.unwrap_or("–".into());
    [
        group.family.to_owned(),
        dtype,
        problem,
        config,
        or_dash(measured.map(|m| format!("{:.1} µs", m.seconds.median * 1e6))),
        or_dash(measured.map(|m| format!("{:.1} %", m.seconds.spread() * 100.0))),
        or_dash(measured.map(rate)),
        or_dash(speedup.map(|s| format!("× {s:.2}"))),
        or_dash(share.map(|s| format!("{s:.3}"))),
        or_dash(limit.map(|l| format!("{} {}", group.bound.limit_name(), rate(l)))),
        or_dash(
            measured
                .and_then(|m| m.reading.sm_mhz)
                .map(|x| format!("{x:.0}")),
        ),
        or_dash(
            measured
                .and_then(|m| m.reading.watts)
                .map(|x| format!("{x:.0}")),
        ),
    ]
}

/// Splits a problem into its element type and its other fields.
fn split(problem: &Value) -> (String, String) {
    let mut fields = problem.as_object().cloned().unwrap_or_default();
    let dtype = fields.shift_remove("dtype");
    fields.retain(|_, value| !value.is_null());
    let dtype = dtype.as_ref().and_then(Value::as_str).unwrap_or("–");
    (dtype.to_owned(), display::settings(&Value::Object(fields)))
}

/// Formats the device and the method.
fn notes(bench: &BenchReport) -> String {
    let mut rows = vec![("device", bench.device.description.clone())];
    rows.extend(method(bench));
    let no_limits = bench.groups.iter().filter_map(|h| h.no_limit.clone());
    rows.extend(no_limits.take(1).map(|why| ("limit", why)));
    rows.extend((bench.no_sensors.iter()).map(|why| ("sensors", format!("not readable: {why}"))));
    report::fields("Method", &rows)
}

/// Returns how times were measured and outputs compared, one line each.
pub(crate) fn method(bench: &BenchReport) -> Vec<(&'static str, String)> {
    let noise = bench
        .groups
        .iter()
        .filter_map(|h| Some(h.noise?.relative_difference));
    let noise = noise.fold(None, |max: Option<f64>, x| {
        Some(max.map_or(x, |max| max.max(x)))
    });
    let mut methods: Vec<&str> = Vec::new();
    for (_, row) in bench.rows() {
        methods.extend(
            (row.check.as_ref())
                .map(|c| c.method)
                .filter(|method| !methods.contains(method)),
        );
    }
    let mut rows = vec![
        (
            "times",
            format!(
                "median of {} rounds in random order after warm-up; spread: interquartile range / median",
                bench.rounds
            ),
        ),
        (
            "cache",
            format!(
                "L2 flushed before each launch by reading {}",
                display::bytes(bench.flush_bytes)
            ),
        ),
        (
            "noise",
            match noise {
                Some(noise) => format!(
                    "two entries of the same kernel differ by at most {:.1} %",
                    noise * 100.0
                ),
                None => "no kernel was timed".into(),
            },
        ),
    ];
    rows.extend(
        methods
            .iter()
            .map(|method| ("result", format!("compared at the timed sizes: {method}"))),
    );
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn element_type_has_its_own_column() {
        let (dtype, rest) =
            split(&json!({ "rows": 8192, "dtype": "bf16", "cols": 32768, "stride": null }));
        assert_eq!(
            (dtype.as_str(), rest.as_str()),
            ("bf16", "rows 8192, cols 32768")
        );
        assert_eq!(split(&json!({ "n": 3 })).0, "–");
    }
}
