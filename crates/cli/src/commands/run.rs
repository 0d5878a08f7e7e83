//! `warpline run FAMILY`, and the run of the first family when no command is given.

use super::watchdog;
use crate::args::fields::request;
use crate::args::{Examples, RunArgs};
use crate::errors::Failure;
use crate::output::CommandOutput;
use crate::progress::Bar;
use crate::tensors::{self, Destination};
use crate::{display, report};
use clap::{ArgMatches, FromArgMatches};
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use warpline::data::TensorFiles;
use warpline::{Device, RunOptions, RunReport, estimate, prepare, tune};
use warpline_diagram::Diagram;
use warpline_family::StoredTensors;
use warpline_kernels::{AnyFamily, AnyWorkload};

/// The legend below the kernel diagrams.
const DIAGRAM_LEGEND: &str = "  box: a role, the warps of a CTA that run one body\n  arrow: a ring, a circular buffer in \
     shared memory (stages × bytes per stage)\n";

/// Runs the default problem of the first family on a GPU, or on the CPU executor if
/// no GPU is usable, and draws its kernels.
pub(crate) fn run_first_family(
    families: &[&dyn AnyFamily],
    args: &[OsString],
) -> Result<CommandOutput, Failure> {
    let Some(family) = families.first() else {
        return Err(Failure::bad_input(
            "no-family",
            "this program registers no kernel family",
        ));
    };
    let selected = SelectedDevice::auto();
    let work = family.default_workload(selected.device.kind(), &selected.device.target())?;
    let (work, tuned) = tune::select(work, &selected.device, true)?;
    let options = RunOptions::default();
    watchdog::run_first(work.as_ref(), &selected.device, &options)?;
    let request = RunRequest {
        about: Some(family.about()),
        tuned,
        ..RunRequest::default()
    };
    let mut output = selected.run(work.as_ref(), options, &request)?;
    for step in prepare(work.as_ref(), &selected.device.target())?.steps {
        output.text += &format!(
            "\nkernel {}: {} CTAs of {} threads, proved free of deadlocks and data races\n{}",
            step.kernel.name,
            step.ctas(),
            step.kernel.threads(),
            Diagram::of(&step.kernel).text()
        );
    }
    output.text += DIAGRAM_LEGEND;
    output.text += &Examples::new(args, families).next();
    Ok(output)
}

/// Runs the problem and config of the command line.
pub(crate) fn run(family: &dyn AnyFamily, matches: &ArgMatches) -> Result<CommandOutput, Failure> {
    let args = RunArgs::from_arg_matches(matches)
        .map_err(|e| Failure::bad_input("bad-usage", e.to_string()))?;
    let selected = SelectedDevice::new(&args.device)?;
    let mut options = RunOptions::default();
    options.seed = args.seed;
    options.repeat = args.repeat;
    if let Some(timing) = args.timing {
        if !selected.device.is_cpu() {
            let device = selected.device.name();
            let text = format!(
                "--timing {timing} requires the CPU executor (device: {device})\n\
                 help: add --device cpu"
            );
            return Err(Failure::bad_input("bad-usage", text));
        }
        options.timing = timing;
    }
    let save = args.save.as_deref().map(Destination::new).transpose()?;
    let source = args.data.as_deref().map(TensorFiles::open).transpose()?;
    let (kind, target) = (selected.device.kind(), selected.device.target());
    let stored = source.as_ref().map(|source| source as &dyn StoredTensors);
    let work = family.workload(&request(family, matches), kind, stored, &target)?;
    let (work, tuned) = tune::select(work, &selected.device, true)?;
    if let Some(source) = &source {
        options.data = Some(Arc::new(tensors::read(work.as_ref(), source)?));
    }
    if !args.no_watchdog {
        watchdog::run_first(work.as_ref(), &selected.device, &options)?;
    }
    let request = RunRequest {
        // A flag may select a kernel of another family (`dual-gemm --dtype nvfp4`).
        about: (family.name() == work.family()).then(|| family.about()),
        tuned,
        verbose: args.verbose,
        data: args.data,
        save,
    };
    selected.run(work.as_ref(), options, &request)
}

/// The parts of a run request that are not run options.
#[derive(Default)]
struct RunRequest {
    /// The computation in one line.
    about: Option<&'static str>,
    /// Whether the config comes from the tuning cache.
    tuned: bool,
    verbose: bool,
    /// The source of the inputs; random inputs if none.
    data: Option<PathBuf>,
    /// The destination of inputs and outputs.
    save: Option<Destination>,
}

/// A device and, if `auto` selected the CPU executor, the reason that no GPU is usable.
struct SelectedDevice {
    device: Device,
    reason: Option<String>,
}

impl SelectedDevice {
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
        work: &dyn AnyWorkload,
        mut options: RunOptions,
        request: &RunRequest,
    ) -> Result<CommandOutput, Failure> {
        if self.device.is_cpu() {
            estimate::check_host_memory(work)?;
            let repeats = options.repeat.map_or(1, |n| n.get());
            let cost = work.cost();
            warn_if_long(estimate::simulation_seconds(&cost, options.timing, repeats));
        }
        options.simulate = true;
        let bar = Bar::new();
        options.progress = Some(bar.listener());
        let (outcome, tensors) = warpline::run_with_tensors(work, &self.device, &options)?;
        drop(bar);
        let (reason, data) = (self.reason.as_deref(), request.data.as_deref());
        let about = request.about;
        let mut text = report::run(&outcome, about, reason, request.tuned, data, &options);
        if request.verbose {
            text += &report::build(&outcome);
        }
        if let Some(to) = &request.save {
            to.save(&tensors)?;
            text += &format!("saved inputs and outputs to {}\n", to.path().display());
        }
        Ok(CommandOutput::new("run", text)
            .field("passed", outcome.passed())
            .field("device_reason", &self.reason)
            .field("tuned", request.tuned)
            .field("data", &request.data)
            .field("saved", request.save.as_ref().map(Destination::path))
            .field(
                "timing",
                self.device.is_cpu().then(|| options.timing.name()),
            )
            .fields(&outcome)
            .with_failure(mismatch(&outcome)))
    }
}

/// Prints the expected CPU executor time if it is long.
pub(super) fn warn_if_long(seconds: f64) {
    if seconds > estimate::DEFAULT_SIMULATION_LIMIT_S {
        let about = display::seconds(seconds);
        let _ = writeln!(
            io::stderr(),
            "note: the CPU executor needs about {about} for this problem"
        );
    }
}

/// Describes the first output that fails, or repeats that differ; none if the run passed.
fn mismatch(outcome: &RunReport) -> Option<Failure> {
    if outcome.passed() {
        return None;
    }
    let text = match outcome.outputs.iter().find(|o| !o.passed()) {
        Some(output) => format!(
            "output {} does not match the reference: {}",
            output.output,
            report::outside(output)
        ),
        None => "repeated runs gave different bits".into(),
    };
    Some(Failure::bad_result("wrong-result", text))
}
