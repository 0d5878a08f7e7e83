//! `warpline sweep FAMILY --vary NAME=A,B,…`.

use super::{device, run};
use crate::answer::Answer;
use crate::args::sweep::SweepArgs;
use crate::args::with_flags;
use crate::errors::Failure;
use crate::progress::Bar;
use crate::sweep::point::{Point, points};
use crate::sweep::row::{Row, failure};
use crate::sweep::{chart, counted, table, timed};
use crate::{file, plot, report, standings, words};
use clap::{ArgMatches, FromArgMatches};
use serde_json::Value;
use std::ffi::OsString;
use warpline::bench::{BenchOptions, BenchReport};
use warpline::{Device, Timing, estimate};
use warpline_kernels::AnyFamily;

/// Runs every point that the arguments ask for.
pub(crate) fn sweep(
    families: &[&dyn AnyFamily],
    family: &dyn AnyFamily,
    args: &[OsString],
    matches: &ArgMatches,
) -> Result<Answer, Failure> {
    let asked = SweepArgs::from_arg_matches(matches)
        .map_err(|e| Failure::input("bad-usage", e.to_string()))?;
    asked.svg.as_deref().map(file::can_write).transpose()?;
    let (device, reason) = device(&asked.device)?;
    let own = with_flags(family, device.place());
    let usage = |e: &clap::Error| Failure::usage(e, args, families);
    let points = points(family, own, matches, &asked.vary, &device, usage)?;
    let swept = match device.is_simulator() {
        true => Swept::counted(&points, &asked, &device),
        false => Swept::timed(points, &asked, &device)?,
    };

    let simulator = device.is_simulator();
    let title = format!("{} on {}", family.name(), device.name());
    let notes = swept.notes(&asked, &device, reason.as_deref());
    let mut text = table::text(&swept.rows, &asked.vary, simulator);
    text += &format!("\n{}", report::fields(&title, &notes));
    if let Some(path) = &asked.svg {
        let names: Vec<_> = asked.vary.iter().map(|v| v.name.as_str()).collect();
        let title = format!("{title}: {}", words::list(&names, "and"));
        let notes = notes.iter().map(|(label, note)| format!("{label}: {note}"));
        let plot = chart::plot(&swept.rows, &asked.vary, simulator, title, notes.collect());
        if let Some(plot) = plot {
            file::write(path, plot::svg(&plot))?;
            text += &format!("the plot is in {}\n", path.display());
        }
    }
    let failure = failure(&swept.rows);
    Ok(Answer::new("sweep", text)
        .field("passed", failure.is_none())
        .field("family", family.name())
        .field("device", device.info())
        .field("device_reason", reason)
        .field("seed", asked.seed)
        .field("rounds", swept.report.as_ref().map(|r| r.rounds))
        .field("svg", &asked.svg)
        .field("points", &swept.rows)
        .failing(failure))
}

/// What became of all points.
struct Swept {
    rows: Vec<Row>,
    /// How a GPU was measured.
    report: Option<BenchReport>,
}

impl Swept {
    fn counted(points: &[Point], asked: &SweepArgs, device: &Device) -> Self {
        let works = points.iter().filter_map(|p| p.work.as_ref().ok());
        let seconds = works.map(|w| estimate::simulation_seconds(&w.cost(), Timing::Eager, 1));
        run::warn_of(seconds.sum());
        Self {
            rows: counted::count(points, &asked.vary, device, asked.seed),
            report: None,
        }
    }

    fn timed(points: Vec<Point>, asked: &SweepArgs, device: &Device) -> Result<Self, Failure> {
        let bar = Bar::new();
        let mut options = BenchOptions::default();
        options.rounds = asked.rounds;
        options.seed = asked.seed;
        options.progress = Some(bar.stages());
        let (rows, report) = timed::measure(points, &asked.vary, device, &options)?;
        Ok(Self {
            rows,
            report: Some(report),
        })
    }

    /// What to know about it, line by line.
    fn notes(
        &self,
        asked: &SweepArgs,
        device: &Device,
        reason: Option<&str>,
    ) -> Vec<(&'static str, String)> {
        let mut notes = vec![("device", device.info().description)];
        notes.extend(reason.map(|why| ("because", why.to_owned())));
        notes.extend(self.fixed(asked).map(|problem| ("problem", problem)));
        match &self.report {
            Some(report) => notes.extend(standings::protocol(report)),
            None => notes.push((
                "counted",
                "by the simulator, which compares each point with the reference; times need a GPU"
                    .into(),
            )),
        }
        notes
    }

    /// The problem, but for what varies.
    fn fixed(&self, asked: &SweepArgs) -> Option<String> {
        let problem = self.rows.iter().find_map(|row| row.problem.as_ref())?;
        let mut fields = problem.as_object().cloned().unwrap_or_default();
        let varies = |name: &String| {
            let mut all = asked.vary.iter();
            all.any(|v| v.name.replace('-', "_") == *name)
        };
        fields.retain(|name, _| !varies(name));
        Some(words::settings(&Value::Object(fields)))
    }
}
