//! The report of a run; tables and lists of fields for all reports.

use crate::display;
use comfy_table::{ContentArrangement, Table, presets};
use std::path::Path;
use warpline::{CodeOrigin, Comparison, KernelRun, RunOptions, RunReport};

/// Returns an empty table in the style of all reports.
pub(crate) fn table<'a>(header: impl IntoIterator<Item = &'a str>) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(header.into_iter().map(str::to_uppercase));
    table
}

/// Formats a title and, below it, one line per field.
pub(crate) fn fields(title: &str, rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(label, _)| label.len()).max().unwrap_or(0);
    let mut text = format!("{title}\n");
    for (label, value) in rows {
        text.push_str(&format!("  {label:width$}  {value}\n"));
    }
    text
}

/// Formats the report of a run; `about` is the computation in one line.
pub(crate) fn run(
    outcome: &RunReport,
    about: Option<&str>,
    reason: Option<&str>,
    tuned: bool,
    data: Option<&Path>,
    options: &RunOptions,
) -> String {
    let device = &outcome.device;
    let mut rows: Vec<(&str, String)> = Vec::new();
    rows.extend(about.map(|about| ("computes", about.to_owned())));
    rows.push(("device", device.description.clone()));
    rows.extend(reason.map(|reason| ("no GPU", reason.to_owned())));
    rows.push(("problem", display::settings(&outcome.problem)));
    rows.extend(data.map(|path| ("inputs", format!("from {}", path.display()))));
    let selected_by = match (tuned, &outcome.fallback) {
        (_, Some(_)) => " (baseline: the checker cannot decide the selected config)",
        (true, None) => " (tuned)",
        (false, None) => "",
    };
    let config = display::settings(&outcome.config);
    rows.push(("config", format!("{config}{selected_by}")));
    rows.extend(results(outcome).into_iter().map(|line| ("result", line)));
    if device.is_cpu {
        rows.push(("counters", counters(outcome)));
        rows.push(("time", executor_time(outcome, options)));
    } else {
        rows.push(("time", gpu_time(outcome)));
        rows.extend(rate(outcome).map(|r| ("rate", r)));
    }
    fields(&format!("{} on {}", outcome.family, device.name), &rows)
}

/// Formats how the kernels were built: the time of each step, then each kernel.
pub(crate) fn build(outcome: &RunReport) -> String {
    let times = &outcome.build;
    let mut stages = vec![("build", times.build), ("check", times.check)];
    if !outcome.device.is_cpu {
        stages.extend([("PTX", times.print), ("driver JIT", times.jit)]);
    }
    let stages: Vec<String> = stages
        .into_iter()
        .map(|(stage, took)| format!("{stage} {}", display::seconds(took.as_secs_f64())))
        .collect();
    let mut rows = vec![("time", stages.join(", "))];
    if let Some(fallback) = &outcome.fallback {
        let selected = display::settings(&fallback.selected);
        let text = format!("used in place of the selected config, which is undecided: {selected}");
        rows.push(("baseline", text));
    }
    rows.extend(outcome.kernels.iter().map(|k| ("kernel", kernel(k))));
    fields("kernel build", &rows)
}

fn kernel(kernel: &KernelRun) -> String {
    let [x, y, z] = kernel.grid;
    let origin = match kernel.origin {
        None => "",
        Some(CodeOrigin::Compiled) => ", compiled by the driver",
        Some(CodeOrigin::CompiledWhole) => ", compiled by the driver as a whole program",
        Some(CodeOrigin::Disk) => ", from the disk cache",
        Some(CodeOrigin::Process) => ", from the cache of this process",
    };
    format!(
        "{} (hash {}): {x}×{y}×{z} CTAs, {} threads and {} of shared memory each{origin}",
        kernel.name,
        kernel.hash,
        kernel.threads,
        display::bytes(kernel.shared_bytes.into())
    )
}

/// Returns PASS or FAIL: one line per output, and one more if repeats differ.
fn results(outcome: &RunReport) -> Vec<String> {
    let mut lines: Vec<String> = outcome.outputs.iter().map(result).collect();
    if !outcome.same_bits {
        lines.push("FAIL: repeated runs gave different bits".into());
    }
    lines
}

/// Returns PASS or FAIL of one output, with its largest error.
fn result(output: &Comparison) -> String {
    match output.passed() {
        true => format!("PASS: {}", within(output)),
        false => format!("FAIL: {}", outside(output)),
    }
}

/// Formats `65536 elements within tolerance (max error 7.8e-3; worst element c[46, 24]: 0.51 ulp, relative 3.9e-3)`.
///
/// The worst element has the largest ratio of error to tolerance. The largest error in ulp is often
/// in an element that cancels to almost zero, where the tolerance is wide.
fn within(output: &Comparison) -> String {
    let (name, elements) = (&output.output, output.elements);
    match &output.worst {
        None => format!("{name} has no elements to compare"),
        Some(worst) if worst.error == 0.0 => {
            format!("{elements} elements within tolerance (max error 0 in {name})")
        }
        Some(worst) => format!(
            "{elements} elements within tolerance (max error {}; worst element {}: {} ulp, relative {})",
            display::relative(output.max_error),
            element(name, &worst.index),
            display::ulp(worst.ulp),
            display::relative(worst.relative)
        ),
    }
}

/// Formats `12 of 65536 elements outside tolerance (worst at c[46, 24]: got 1.25, …)`.
pub(crate) fn outside(output: &Comparison) -> String {
    let Comparison {
        output: name,
        elements,
        failed,
        never_written,
        ..
    } = output;
    let failing = output.worst.as_ref().filter(|worst| worst.ratio > 1.0);
    let mut details = Vec::new();
    if *never_written > 0 {
        details.push(format!("{never_written} never written"));
    }
    if let Some(worst) = failing {
        let mut text = format!(
            "worst at {}: got {}, expected {}",
            element(name, &worst.index),
            display::element(worst.value),
            display::element(worst.expected)
        );
        if worst.ulp.is_finite() {
            text += &format!(
                ", error {} ulp, relative {}, tolerance {} ulp",
                display::ulp(worst.ulp),
                display::relative(worst.relative),
                display::ulp(worst.bound_ulp)
            );
        }
        details.push(text);
    }
    if details.is_empty() {
        details.push(format!("{name} was written where it must stay unchanged"));
    }
    let details = details.join("; ");
    format!("{failed} of {elements} elements outside tolerance ({details})")
}

/// Formats the position of an element: `c[3, 17]`.
fn element(name: &str, index: &[usize]) -> String {
    let index: Vec<String> = index.iter().map(ToString::to_string).collect();
    format!("{name}[{}]", index.join(", "))
}

/// Formats the CPU executor's counters, summed over all kernels.
fn counters(outcome: &RunReport) -> String {
    let stats: Vec<_> = outcome
        .kernels
        .iter()
        .filter_map(|k| k.stats.as_ref())
        .collect();
    let roles = stats.iter().flat_map(|s| &s.roles);
    let roles: Vec<String> = roles
        .map(|r| format!("{} in role {}", display::count(r.instructions), r.name))
        .collect();
    let sites = stats.iter().flat_map(|s| &s.sites);
    let conflicts: u64 = sites.map(|s| s.traffic.bank_conflicts).sum();
    format!(
        "warp instructions: {}; shared-memory bank conflicts: {}",
        display::list(&roles, "and"),
        display::count(conflicts)
    )
}

fn executor_time(outcome: &RunReport, options: &RunOptions) -> String {
    format!(
        "{} CPU executor time, not GPU time (timing {}, seed {})",
        display::seconds(outcome.times.median_s),
        options.timing,
        options.seed
    )
}

fn gpu_time(outcome: &RunReport) -> String {
    let times = &outcome.times;
    format!(
        "{} (median of {} launches, {} to {}; L2 flushed before each)",
        display::seconds(times.median_s),
        times.all_s.len(),
        display::seconds(times.min_s()),
        display::seconds(times.max_s())
    )
}

fn rate(outcome: &RunReport) -> Option<String> {
    let rates = outcome.rates.as_ref()?;
    let share = rates.memory_fraction.map_or(String::new(), |s| {
        format!(" ({:.0} % of peak memory bandwidth)", s * 100.0)
    });
    Some(format!(
        "{}B/s{share}, {}FLOP/s",
        display::si(rates.bytes_per_s),
        display::si(rates.flops_per_s)
    ))
}
