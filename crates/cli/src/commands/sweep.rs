//! `warpline sweep FAMILY --vary NAME=A,B,…`.

use super::{device, run};
use crate::args::sweep::SweepArgs;
use crate::args::with_flags;
use crate::errors::Failure;
use crate::output::CommandOutput;
use crate::progress::Bar;
use crate::sweep::point::{Point, points};
use crate::sweep::row::{Row, failure};
use crate::sweep::{chart, counted, table, timed};
use crate::{bench_report, display, file, plot, report};
use clap::{ArgMatches, FromArgMatches};
use serde_json::Value;
use std::ffi::OsString;
use warpline::bench::{BenchOptions, BenchReport};
use warpline::{Device, Timing, estimate};
use warpline_kernels::AnyFamily;

/// Runs every point of the sweep.
pub(crate) fn sweep(
    families: &[&dyn AnyFamily],
    family: &dyn AnyFamily,
    args: &[OsString],
    matches: &ArgMatches,
) -> Result<CommandOutput, Failure> {
    let options = SweepArgs::from_arg_matches(matches)
        .map_err(|e| Failure::bad_input("bad-usage", e.to_string()))?;
    options.svg.as_deref().map(file::can_write).transpose()?;
    let (device, reason) = device(&options.device)?;
    let command = with_flags(family, device.kind());
    let usage = |e: &clap::Error| Failure::usage(e, args, families);
    let points = points(family, command, matches, &options.vary, &device, usage)?;
    let result = match device.is_cpu() {
        true => SweepResult::counted(&points, &options, &device),
        false => SweepResult::timed(points, &options, &device)?,
    };

    let on_cpu = device.is_cpu();
    let title = format!("{} on {}", family.name(), device.name());
    let notes = result.notes(&options, &device, reason.as_deref());
    let mut text = table::text(&result.rows, &options.vary, on_cpu);
    text += &format!("\n{}", report::fields(&title, &notes));
    if let Some(path) = &options.svg {
        let names: Vec<_> = options.vary.iter().map(|v| v.name.as_str()).collect();
        let title = format!("{title}: {}", display::list(&names, "and"));
        let notes = notes.iter().map(|(label, note)| format!("{label}: {note}"));
        let plot = chart::plot(&result.rows, &options.vary, on_cpu, title, notes.collect());
        if let Some(plot) = plot {
            file::write(path, plot::render(&plot))?;
            text += &format!("plot written to {}\n", path.display());
        }
    }
    let failure = failure(&result.rows);
    Ok(CommandOutput::new("sweep", text)
        .field("passed", failure.is_none())
        .field("family", family.name())
        .field("device", device.info())
        .field("device_reason", reason)
        .field("seed", options.seed)
        .field("rounds", result.report.as_ref().map(|r| r.rounds))
        .field("svg", &options.svg)
        .field("points", &result.rows)
        .with_failure(failure))
}

/// The results of all points.
struct SweepResult {
    rows: Vec<Row>,
    /// The measurement; none on the CPU executor.
    report: Option<BenchReport>,
}

impl SweepResult {
    fn counted(points: &[Point], options: &SweepArgs, device: &Device) -> Self {
        let works = points.iter().filter_map(|p| p.work.as_ref().ok());
        let seconds = works.map(|w| estimate::simulation_seconds(&w.cost(), Timing::Eager, 1));
        run::warn_if_long(seconds.sum());
        Self {
            rows: counted::count(points, &options.vary, device, options.seed),
            report: None,
        }
    }

    fn timed(points: Vec<Point>, options: &SweepArgs, device: &Device) -> Result<Self, Failure> {
        let bar = Bar::new();
        let mut bench_options = BenchOptions::default();
        bench_options.rounds = options.rounds;
        bench_options.seed = options.seed;
        bench_options.progress = Some(bar.bench_listener());
        let (rows, report) = timed::measure(points, &options.vary, device, &bench_options)?;
        Ok(Self {
            rows,
            report: Some(report),
        })
    }

    /// Returns the device, the problem and the method, one line each.
    fn notes(
        &self,
        options: &SweepArgs,
        device: &Device,
        reason: Option<&str>,
    ) -> Vec<(&'static str, String)> {
        let mut notes = vec![("device", device.info().description)];
        notes.extend(reason.map(|why| ("no GPU", why.to_owned())));
        notes.extend(
            self.fixed_problem(options)
                .map(|problem| ("problem", problem)),
        );
        match &self.report {
            Some(report) => notes.extend(bench_report::method(report)),
            None => notes.push((
                "counters",
                "from the CPU executor, which compares each point with the reference; \
                 times need a GPU"
                    .into(),
            )),
        }
        notes
    }

    /// Returns the problem without the fields that vary.
    fn fixed_problem(&self, options: &SweepArgs) -> Option<String> {
        let problem = self.rows.iter().find_map(|row| row.problem.as_ref())?;
        let mut fields = problem.as_object().cloned().unwrap_or_default();
        let varies = |name: &String| {
            let mut all = options.vary.iter();
            all.any(|v| v.name.replace('-', "_") == *name)
        };
        fields.retain(|name, _| !varies(name));
        Some(display::settings(&Value::Object(fields)))
    }
}
