//! The page of the GEMM ladder, from a recorded run of `warpline bench ladder --json`.

use crate::Generated;
use crate::chart::{Chart, Row};
use anyhow::{Context, Result};
use serde::Deserialize;
use std::fmt::Write;
use std::path::Path;

/// The recorded run.
#[derive(Deserialize)]
struct Report {
    rounds: u32,
    device: Device,
    groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Device {
    description: String,
}

/// The nine kernels at one problem size.
#[derive(Deserialize)]
struct Group {
    problem: Shape,
    cost: Cost,
    rows: Vec<Step>,
}

#[derive(Deserialize)]
struct Shape {
    mnk: [u32; 3],
}

#[derive(Deserialize)]
struct Cost {
    flops: f64,
}

#[derive(Deserialize)]
struct Step {
    config: Config,
    measured: Option<Measured>,
}

#[derive(Deserialize)]
struct Config {
    step: String,
    tile: [u32; 2],
    stages: u32,
}

#[derive(Deserialize)]
struct Measured {
    seconds: Seconds,
}

#[derive(Deserialize)]
struct Seconds {
    median: f64,
}

/// The change of each step, for the table.
const CHANGES: [(&str, &str); 9] = [
    (
        "plain tensor cores",
        "all threads copy a stage with `cp.async`, synchronize, multiply",
    ),
    ("TMA", "one thread loads the stage with a tensor map"),
    (
        "ring",
        "four stages: loads run ahead, all warps load and multiply",
    ),
    ("roles", "one warp loads, two warpgroups multiply"),
    (
        "setmaxnreg",
        "registers move from the load role to the consumers",
    ),
    (
        "persistent",
        "one CTA per SM iterates over tiles in groups of 8",
    ),
    ("ping-pong", "consumers compute alternate tiles"),
    ("wave-exact tile", "the tile width that fills the last wave"),
    (
        "TMA store",
        "C leaves through shared memory, beside the next tile",
    ),
];

/// Returns the page and its chart.
pub fn page(root: &Path) -> Result<Vec<Generated>> {
    let path = root.join("docs/perf/data/ladder.json");
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let report: Report =
        serde_json::from_str(&text).context("docs/perf/data/ladder.json is not a recorded run")?;
    let mut page = format!(
        "<!-- Written by `cargo xtask docs` from docs/perf/data/ladder.json. -->\n\n# A GEMM in nine steps\n\n\
         Nine bf16 kernels; each is the previous one with one change. Source: `crates/probes/src/ladder`, pictures: \
         [examples](../../examples).\n\n![Speed of each step relative to the first](ladder.svg)\n\n\
         {}, median of {} rounds in random order with a cold L2 cache, every output checked. Command: \
         `warpline bench ladder --rounds {}`.\n\n| step | change | tile | stages |",
        report.device.description, report.rounds, report.rounds
    );
    for group in &report.groups {
        let [m, n, k] = group.problem.mnk;
        let _ = write!(page, " {m}×{n}×{k}, TFLOP/s |");
    }
    let _ = write!(
        page,
        "\n|---|---|---|---|{}",
        "---|".repeat(report.groups.len())
    );
    let steps = report.groups.first().map_or(&[][..], |group| &group.rows);
    for (i, step) in steps.iter().enumerate() {
        let Config {
            step: name,
            tile: [m, n],
            stages,
        } = &step.config;
        let change = CHANGES
            .iter()
            .find(|(known, _)| known == name)
            .map_or("", |(_, change)| change);
        let _ = write!(page, "\n| {name} | {change} | {m}×{n} | {stages} |");
        for group in &report.groups {
            let _ = write!(
                page,
                " {} |",
                rate(group, i).map_or("–".into(), |rate| format!("{rate:.0}"))
            );
        }
    }
    page.push('\n');
    Ok(vec![
        Generated {
            path: "docs/perf/ladder.svg".into(),
            text: chart(&report).svg(),
        },
        Generated {
            path: "docs/perf/ladder.md".into(),
            text: page,
        },
    ])
}

/// Returns the TFLOP/s of a step.
fn rate(group: &Group, step: usize) -> Option<f64> {
    let measured = group.rows.get(step)?.measured.as_ref()?;
    Some(group.cost.flops / measured.seconds.median / 1e12)
}

fn chart(report: &Report) -> Chart {
    let steps = report.groups.first().map_or(&[][..], |group| &group.rows);
    let rows = steps.iter().enumerate().map(|(i, step)| Row {
        label: format!("{}. {}", i + 1, step.config.step),
        values: report
            .groups
            .iter()
            .map(|group| Some(rate(group, i)? / rate(group, 0)?))
            .collect(),
        group: None,
    });
    let name = |group: &Group| group.problem.mnk.map(|n| n.to_string()).join(" × ");
    Chart {
        title: "A GEMM in nine steps".into(),
        subtitle: format!(
            "Speed relative to the first step, bf16, {}",
            report.device.description
        ),
        series: report.groups.iter().map(name).collect(),
        rows: rows.collect(),
        footer: "Median times, cold L2, random order. Data: docs/perf/data/ladder.json".into(),
    }
}
