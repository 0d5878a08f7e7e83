//! The results of a sweep as a table.

use super::row::{Counted, Row, Timed};
use super::vary::Vary;
use crate::{display, report};
use warpline::gpu::Footprint;

const TIMED: [&str; 6] = [
    "median time",
    "spread",
    "of fastest",
    "rate",
    "registers",
    "shared memory",
];
const COUNTED: [&str; 5] = [
    "warp instructions",
    "global memory",
    "bank conflicts",
    "shared memory",
    "CTAs",
];

/// Formats a table of points: varied values, times or counters, PASS or FAIL.
pub(crate) fn text(rows: &[Row], vary: &[Vary], on_cpu: bool) -> String {
    let columns: &[&str] = if on_cpu { &COUNTED } else { &TIMED };
    let names = vary.iter().map(|v| v.name.as_str());
    let mut table = report::table(names.chain(columns.iter().copied()).chain(["result"]));
    for row in rows {
        let mut cells = row.value_texts.clone();
        match (&row.timed, &row.counted) {
            (Some(timed), _) => cells.extend(times(timed)),
            (_, Some(counted)) => cells.extend(counts(counted)),
            _ => cells.extend(columns.iter().map(|_| "–".to_owned())),
        }
        let result = row.failure.as_ref().map(|f| f.line());
        cells.push(result.unwrap_or("PASS".into()));
        table.add_row(cells);
    }
    format!("{}\n", table.trim_fmt())
}

fn times(timed: &Timed) -> [String; 6] {
    let max = |field: fn(&Footprint) -> u32| timed.kernels.iter().map(field).max().unwrap_or(0);
    [
        format!("{:.1} µs", timed.seconds.median * 1e6),
        format!("{:.1} %", timed.seconds.spread() * 100.0),
        format!("× {:.3}", timed.of_fastest),
        format!("{}{}", display::si(timed.rate), timed.unit),
        max(|k| k.registers).to_string(),
        display::bytes(max(|k| k.shared_bytes).into()),
    ]
}

fn counts(counted: &Counted) -> [String; 5] {
    [
        display::count(counted.instructions),
        display::bytes(counted.global_bytes),
        display::count(counted.bank_conflicts),
        display::bytes(counted.shared_bytes.into()),
        counted.ctas.to_string(),
    ]
}
