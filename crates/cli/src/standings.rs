//! The report of a measurement.

use crate::{report, words};
use comfy_table::ColumnConstraint;
use serde_json::Value;
use warpline::bench::report::{BenchReport, HeatReport, Measured, Row};

const HEADER: [&str; 12] = [
    "work", "dtype", "problem", "config", "median", "spread", "rate", "gain", "of limit", "limit",
    "SM MHz", "W",
];
/// The column that only steps have: what each gained over the one before.
const GAIN: usize = 7;

/// A table of all rows, and what to know about it.
pub(crate) fn text(bench: &BenchReport) -> String {
    let mut table = report::table(HEADER);
    for (heat, row) in bench.rows() {
        table.add_row(cells(heat, row, "", &row.measured, &heat.limit));
        if row.sustained.is_some() {
            let alone = [&row.sustained, &heat.limit_sustained];
            table.add_row(cells(heat, row, " (sustained)", alone[0], alone[1]));
        }
    }
    if !bench.rows().any(|(_, row)| row.gain.is_some()) {
        let hidden = ColumnConstraint::Hidden;
        table.column_mut(GAIN).map(|c| c.set_constraint(hidden));
    }
    let failures = bench.rows().filter_map(|(heat, row)| {
        let config = words::settings(&row.config);
        let why = row.failure.as_ref()?;
        Some(format!("not timed: {}, {config}: {why}\n", heat.family))
    });
    let failures: String = failures.collect();
    format!("{}\n{failures}\n{}", table.trim_fmt(), notes(bench))
}

/// One line of the table; `note` goes behind the config.
fn cells(
    heat: &HeatReport,
    row: &Row,
    note: &str,
    measured: &Option<Measured>,
    limit: &Option<Measured>,
) -> [String; 12] {
    let (measured, limit) = (measured.as_ref(), limit.as_ref());
    let (dtype, problem) = split(&heat.problem);
    let chosen = match row.chosen && heat.rows.len() > 1 {
        true => " (chosen)",
        false => "",
    };
    let config = format!("{}{chosen}{note}", words::settings(&row.config));
    let unit = heat.bound.unit();
    let rate = |m: &Measured| format!("{}{unit}", words::scaled(m.rate));
    let gain = row.gain.filter(|_| note.is_empty());
    let share = measured.zip(limit).map(|(m, l)| m.rate / l.rate);
    let or_dash = |text: Option<String>| text.unwrap_or("–".into());
    [
        heat.family.to_owned(),
        dtype,
        problem,
        config,
        or_dash(measured.map(|m| format!("{:.1} µs", m.seconds.median * 1e6))),
        or_dash(measured.map(|m| format!("{:.1} %", m.seconds.spread() * 100.0))),
        or_dash(measured.map(rate)),
        or_dash(gain.map(|gain| format!("× {gain:.2}"))),
        or_dash(share.map(|s| format!("{s:.3}"))),
        or_dash(limit.map(|l| format!("{} {}", heat.bound.limit(), rate(l)))),
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

/// The element type of a problem, and what else it says.
fn split(problem: &Value) -> (String, String) {
    let mut fields = problem.as_object().cloned().unwrap_or_default();
    let dtype = fields.shift_remove("dtype");
    fields.retain(|_, value| !value.is_null());
    let dtype = dtype.as_ref().and_then(Value::as_str).unwrap_or("–");
    (dtype.to_owned(), words::settings(&Value::Object(fields)))
}

/// How it was measured.
fn notes(bench: &BenchReport) -> String {
    let mut rows = vec![("device", bench.device.description.clone())];
    rows.extend(protocol(bench));
    let no_limits = bench.heats.iter().filter_map(|h| h.no_limit.clone());
    rows.extend(no_limits.take(1).map(|why| ("limit", why)));
    rows.extend((bench.no_sensors.iter()).map(|why| ("sensors", format!("none: {why}"))));
    report::fields("How it was measured", &rows)
}

/// How times were taken and outputs checked, line by line.
pub(crate) fn protocol(bench: &BenchReport) -> Vec<(&'static str, String)> {
    let apart = bench.heats.iter().filter_map(|h| Some(h.twice?.apart));
    let apart = apart.fold(None, |most: Option<f64>, x| {
        Some(most.map_or(x, |most| most.max(x)))
    });
    let mut hows: Vec<&str> = Vec::new();
    for (_, row) in bench.rows() {
        hows.extend(
            (row.check.as_ref())
                .map(|c| c.how)
                .filter(|how| !hows.contains(how)),
        );
    }
    let mut rows = vec![
        (
            "times",
            format!(
                "medians of {} rounds in random order after warm-up; spread is the middle half",
                bench.rounds
            ),
        ),
        (
            "cache",
            format!(
                "level 2 flushed before each launch by reading {}",
                words::bytes(bench.flush_bytes)
            ),
        ),
        (
            "twice",
            match apart {
                Some(apart) => format!(
                    "the same kernel entered twice lay apart by at most {:.1} %",
                    apart * 100.0
                ),
                None => "nothing was timed".into(),
            },
        ),
    ];
    rows.extend(
        hows.iter()
            .map(|how| ("checked", format!("at the timed shape: {how}"))),
    );
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_element_type_has_its_own_column() {
        let (dtype, rest) =
            split(&json!({ "rows": 8192, "dtype": "bf16", "cols": 32768, "stride": null }));
        assert_eq!(
            (dtype.as_str(), rest.as_str()),
            ("bf16", "rows 8192, cols 32768")
        );
        assert_eq!(split(&json!({ "n": 3 })).0, "–");
    }
}
