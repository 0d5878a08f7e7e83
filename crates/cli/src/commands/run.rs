//! `warpline run FAMILY`, and what runs when no command is given.

use super::watchdog;
use crate::answer::Answer;
use crate::args::fields::request;
use crate::args::{Examples, RunArgs};
use crate::errors::Failure;
use crate::picture::picture;
use crate::progress::Bar;
use crate::tensors::{self, Destination};
use crate::{report, words};
use clap::{ArgMatches, FromArgMatches};
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use warpline::data::Source;
use warpline::{Device, Outcome, RunOptions, estimate, prepare, tune};
use warpline_family::Stored;
use warpline_kernels::{AnyFamily, AnyWork};

/// Runs the default problem of the first family on the best device there is.
pub(crate) fn flagship(families: &[&dyn AnyFamily], args: &[OsString]) -> Result<Answer, Failure> {
    let Some(family) = families.first() else {
        return Err(Failure::input(
            "no-family",
            "this program has no kernel family to run",
        ));
    };
    let chosen = Chosen::auto();
    let work = family.default_work(chosen.device.place(), &chosen.device.target())?;
    let (work, tuned) = tune::choose(work, &chosen.device, true)?;
    let options = RunOptions::default();
    watchdog::first(work.as_ref(), &chosen.device, &options)?;
    let asked = Asked {
        tuned,
        ..Asked::default()
    };
    let mut answer = chosen.run(work.as_ref(), options, &asked)?;
    for step in prepare(work.as_ref(), &chosen.device.target())?.steps {
        answer.text += &format!("\nkernel {}\n{}", step.kernel.name, picture(&step.kernel));
    }
    answer.text += &Examples::new(args, families).next();
    Ok(answer)
}

/// Runs the work that the arguments ask for.
pub(crate) fn run(family: &dyn AnyFamily, matches: &ArgMatches) -> Result<Answer, Failure> {
    let args = RunArgs::from_arg_matches(matches)
        .map_err(|e| Failure::input("bad-usage", e.to_string()))?;
    let chosen = Chosen::new(&args.device)?;
    let mut options = RunOptions::default();
    options.seed = args.seed;
    options.repeat = args.repeat;
    if let Some(timing) = args.timing {
        if !chosen.device.is_simulator() {
            let device = chosen.device.name();
            let text =
                format!("--timing {timing} is for the CPU simulator, and the device is {device}");
            return Err(Failure::input("bad-usage", text));
        }
        options.timing = timing;
    }
    let save = args.save.as_deref().map(Destination::new).transpose()?;
    let source = args.data.as_deref().map(Source::open).transpose()?;
    let (place, target) = (chosen.device.place(), chosen.device.target());
    let stored = source.as_ref().map(|source| source as &dyn Stored);
    let work = family.work(&request(family, matches), place, stored, &target)?;
    let (work, tuned) = tune::choose(work, &chosen.device, true)?;
    if let Some(source) = &source {
        options.data = Some(Arc::new(tensors::read(work.as_ref(), source)?));
    }
    if !args.no_watchdog {
        watchdog::first(work.as_ref(), &chosen.device, &options)?;
    }
    let asked = Asked {
        tuned,
        verbose: args.verbose,
        data: args.data,
        save,
    };
    chosen.run(work.as_ref(), options, &asked)
}

/// What is asked of a run beside its options.
#[derive(Default)]
struct Asked {
    /// Was the config tuned?
    tuned: bool,
    verbose: bool,
    /// Where the inputs are from; none where they are drawn.
    data: Option<PathBuf>,
    /// Where its tensors go.
    save: Option<Destination>,
}

/// A device, and why no better one was taken.
struct Chosen {
    device: Device,
    reason: Option<String>,
}

impl Chosen {
    fn auto() -> Self {
        let (device, reason) = Device::auto();
        Self { device, reason }
    }

    fn new(name: &str) -> Result<Self, Failure> {
        let (device, reason) = super::device(name)?;
        Ok(Self { device, reason })
    }

    fn run(
        &self,
        work: &dyn AnyWork,
        mut options: RunOptions,
        asked: &Asked,
    ) -> Result<Answer, Failure> {
        if self.device.is_simulator() {
            estimate::fits_host(work)?;
            let repeats = options.repeat.map_or(1, |n| n.get());
            let cost = work.cost();
            warn_of(estimate::simulation_seconds(&cost, options.timing, repeats));
        }
        options.simulate = true;
        let bar = Bar::new();
        options.progress = Some(bar.listener());
        let (outcome, tensors) = warpline::run_and_keep(work, &self.device, &options)?;
        drop(bar);
        let (why, data) = (self.reason.as_deref(), asked.data.as_deref());
        let mut text = report::run(&outcome, why, asked.tuned, data, &options);
        if asked.verbose {
            text += &report::made(&outcome);
        }
        if let Some(to) = &asked.save {
            to.save(&tensors)?;
            text += &format!("inputs and outputs are in {}\n", to.path().display());
        }
        Ok(Answer::new("run", text)
            .field("passed", outcome.passed())
            .field("device_reason", &self.reason)
            .field("tuned", asked.tuned)
            .field("data", &asked.data)
            .field("saved", asked.save.as_ref().map(Destination::path))
            .field(
                "timing",
                self.device.is_simulator().then(|| options.timing.name()),
            )
            .fields(&outcome)
            .failing(wrong(&outcome)))
    }
}

/// Says how long it will take, where that is long.
pub(super) fn warn_of(seconds: f64) {
    if seconds > estimate::UNASKED_SECONDS {
        let about = words::seconds(seconds);
        let _ = writeln!(
            io::stderr(),
            "note: the CPU is a simulator, and this takes it about {about}"
        );
    }
}

/// What is wrong with the result, in a sentence.
fn wrong(outcome: &Outcome) -> Option<Failure> {
    if outcome.passed() {
        return None;
    }
    let worst = outcome.outputs.iter().find(|o| !o.passed());
    let text = match worst {
        Some(o) => format!(
            "{} of {} elements of {} are wrong{}",
            o.failed,
            o.elements,
            o.output,
            o.worst.as_ref().map_or(String::new(), |w| format!(
                ", the worst at {}: {} where {} is expected within {}",
                report::element(&o.output, &w.index),
                w.value,
                w.expected,
                words::small(w.bound)
            ))
        ),
        None => "the repeats did not give the same bits".into(),
    };
    Some(Failure::refused("wrong-result", text))
}
