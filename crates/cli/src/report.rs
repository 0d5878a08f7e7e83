//! The report of a run, and the looks of tables.

use crate::words;
use comfy_table::{ContentArrangement, Table, presets};
use std::path::Path;
use warpline::{Comparison, KernelRun, Origin, Outcome, RunOptions};

/// An empty table with our looks.
pub(crate) fn table<'a>(header: impl IntoIterator<Item = &'a str>) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(header.into_iter().map(str::to_uppercase));
    table
}

/// A title, and below it one line per field.
pub(crate) fn fields(title: &str, rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(label, _)| label.len()).max().unwrap_or(0);
    let mut text = format!("{title}\n");
    for (label, value) in rows {
        text.push_str(&format!("  {label:width$}  {value}\n"));
    }
    text
}

/// The report of a run.
pub(crate) fn run(
    outcome: &Outcome,
    reason: Option<&str>,
    tuned: bool,
    data: Option<&Path>,
    options: &RunOptions,
) -> String {
    let device = &outcome.device;
    let mut rows = vec![("device", device.description.clone())];
    if let Some(reason) = reason {
        rows.push(("because", reason.to_owned()));
    }
    rows.push(("problem", words::settings(&outcome.problem)));
    rows.extend(data.map(|path| ("inputs", format!("from {}", path.display()))));
    let by = if tuned { " (tuned)" } else { "" };
    let config = words::settings(&outcome.config);
    rows.push(("config", format!("{config}{by}")));
    rows.push(("result", verdict(outcome)));
    rows.extend(outcome.outputs.iter().map(|o| ("error", error(o))));
    if device.simulator {
        rows.push(("counted", counted(outcome)));
        rows.push(("time", simulated(outcome, options)));
    } else {
        rows.push(("time", timed(outcome)));
        rows.extend(rate(outcome).map(|r| ("rate", r)));
    }
    fields(&format!("{} on {}", outcome.family, device.name), &rows)
}

/// How the kernels were made: the stages, and each kernel.
pub(crate) fn made(outcome: &Outcome) -> String {
    let times = &outcome.build;
    let mut stages = vec![("build", times.build), ("check", times.check)];
    if !outcome.device.simulator {
        stages.extend([("print", times.print), ("JIT", times.jit)]);
    }
    let stages: Vec<String> = stages
        .into_iter()
        .map(|(stage, took)| format!("{stage} {}", words::seconds(took.as_secs_f64())))
        .collect();
    let mut rows = vec![("stages", stages.join(", "))];
    if let Some(fallback) = &outcome.fallback {
        let selected = words::settings(&fallback.selected);
        let text = format!("the selected config is undecided: {selected}");
        rows.push(("baseline", text));
    }
    rows.extend(outcome.kernels.iter().map(|k| ("kernel", kernel(k))));
    fields("made", &rows)
}

fn kernel(kernel: &KernelRun) -> String {
    let [x, y, z] = kernel.grid;
    let origin = match kernel.origin {
        None => "",
        Some(Origin::Compiled) => ", compiled by the driver",
        Some(Origin::CompiledWhole) => ", compiled by the driver, whole",
        Some(Origin::Disk) => ", from disk",
        Some(Origin::Process) => ", from this process",
    };
    format!(
        "{} ({}): {x}×{y}×{z} CTAs of {} threads with {} of shared memory{origin}",
        kernel.name,
        kernel.hash,
        kernel.threads,
        words::bytes(kernel.shared_bytes.into())
    )
}

fn verdict(outcome: &Outcome) -> String {
    let (all, wrong) = (outcome.elements(), outcome.failed());
    match (wrong, outcome.same_bits) {
        (0, true) => format!("good: all {all} elements are within their bounds"),
        (0, false) => "WRONG: the repeats did not give the same bits".into(),
        _ => format!("WRONG: {wrong} of {all} elements are outside their bounds"),
    }
}

fn error(output: &Comparison) -> String {
    let Some(worst) = &output.worst else {
        return format!("{} has no elements", output.output);
    };
    let place = element(&output.output, &worst.index);
    let mut text = format!("at most {}", words::small(output.max_error));
    if worst.ratio > 0.0 {
        text += &format!(
            "; {place} comes nearest to its bound: {} of {}",
            words::small(worst.error),
            words::small(worst.bound)
        );
    }
    if output.never_written > 0 {
        text += &format!("; {} elements were never written", output.never_written);
    }
    text
}

/// `c[3, 17]`.
pub(crate) fn element(name: &str, index: &[usize]) -> String {
    let index: Vec<String> = index.iter().map(ToString::to_string).collect();
    format!("{name}[{}]", index.join(", "))
}

/// What the simulator counted, over all kernels.
fn counted(outcome: &Outcome) -> String {
    let stats: Vec<_> = outcome
        .kernels
        .iter()
        .filter_map(|k| k.stats.as_ref())
        .collect();
    let roles = stats.iter().flat_map(|s| &s.roles);
    let roles: Vec<String> = roles
        .map(|r| format!("{} in role {}", words::count(r.instructions), r.name))
        .collect();
    let sites = stats.iter().flat_map(|s| &s.sites);
    let conflicts: u64 = sites.map(|s| s.traffic.bank_conflicts).sum();
    format!(
        "instructions: {}; bank conflicts: {}",
        words::list(&roles, "and"),
        words::count(conflicts)
    )
}

fn simulated(outcome: &Outcome, options: &RunOptions) -> String {
    format!(
        "{} in the simulator (timing {}, seed {}), which is no measure of a GPU",
        words::seconds(outcome.times.median_s),
        options.timing,
        options.seed
    )
}

fn timed(outcome: &Outcome) -> String {
    let times = &outcome.times;
    format!(
        "{} (median of {}, from {} to {}; level-2 cache flushed before each)",
        words::seconds(times.median_s),
        times.all_s.len(),
        words::seconds(times.least_s()),
        words::seconds(times.most_s())
    )
}

fn rate(outcome: &Outcome) -> Option<String> {
    let rates = outcome.rates.as_ref()?;
    let share = rates.memory_share.map_or(String::new(), |s| {
        format!(" ({:.0} % of what the memory can do)", s * 100.0)
    });
    Some(format!(
        "{}B/s{share}, {}FLOP/s",
        words::scaled(rates.bytes_per_s),
        words::scaled(rates.flops_per_s)
    ))
}
