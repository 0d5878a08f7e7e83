//! Runs workloads: plan, check, run, compare.

use crate::compare::{Comparison, DeviceOutput, compare};
use crate::device::Device;
use crate::error::Error;
use crate::estimate;
use crate::gpu::{BuildTimes, CodeOrigin};
use crate::prepare::{Prepared, prepare};
use crate::report::{KernelRun, Rates, RunReport, Times};
use crate::{cpu, gpu};
use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;
use warpline_cpu::{Stats, Timing};
use warpline_kernels::{AnyWorkload, BufferBytes, HostTensor, TensorSpec};

/// The progress of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RunPhase {
    /// Draws the inputs.
    Inputs,
    /// Runs kernels. Counts CTAs on the CPU executor, launches on a GPU.
    Kernels {
        /// The finished CTAs or launches.
        done: u64,
        /// All CTAs or launches, including repeats.
        total: u64,
    },
    /// Computes the reference and compares the outputs.
    Compare,
}

/// A progress callback.
pub type RunProgress = Arc<dyn Fn(RunPhase) + Send + Sync>;

/// The build of a kernel that a GPU runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Build {
    /// The kernel as written.
    #[default]
    Final,
    /// The watchdog build: waits have a time limit, and a hang is reported.
    Watchdog,
}

/// Options of [`run()`].
#[derive(Clone)]
#[non_exhaustive]
pub struct RunOptions {
    /// The seed of the inputs and of [`Timing::Random`].
    pub seed: u64,
    /// When the CPU executor completes asynchronous operations.
    pub timing: Timing,
    /// The number of timed runs; by default 1 on the CPU executor and 10 on a GPU.
    pub repeat: Option<NonZeroU32>,
    /// Allows the CPU executor to run longer than 30 s.
    pub simulate: bool,
    /// The number of CPU executor threads; 0 uses all cores. The result does not depend on it.
    pub threads: usize,
    /// The time limit of one run on a GPU; a longer run counts as hung.
    pub timeout: Duration,
    /// The build of each kernel that a GPU runs.
    pub build: Build,
    /// Rejects a kernel with compiler advisories that change it; by default they are warnings.
    pub strict: bool,
    /// The inputs, instead of random ones.
    pub data: Option<Arc<RunData>>,
    /// The progress callback.
    pub progress: Option<RunProgress>,
}

/// Tensors that the caller passes to a run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RunData {
    /// The inputs, in the order of the workload.
    pub inputs: Vec<HostTensor>,
    /// The value and tolerance of every element of each output; `None` computes the reference.
    pub reference: Option<Vec<Vec<(f64, f64)>>>,
}

impl RunData {
    /// Returns inputs with a computed reference.
    pub fn new(inputs: Vec<HostTensor>) -> Self {
        Self {
            inputs,
            reference: None,
        }
    }

    /// Sets a reference of the caller.
    pub fn with_reference(self, reference: Vec<Vec<(f64, f64)>>) -> Self {
        Self {
            reference: Some(reference),
            ..self
        }
    }
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            seed: 0,
            timing: Timing::Eager,
            repeat: None,
            simulate: false,
            threads: 0,
            timeout: Duration::from_secs(60),
            build: Build::Final,
            strict: false,
            data: None,
            progress: None,
        }
    }
}

impl fmt::Debug for RunOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunOptions")
            .field("seed", &self.seed)
            .field("timing", &self.timing)
            .field("repeat", &self.repeat)
            .field("simulate", &self.simulate)
            .field("threads", &self.threads)
            .field("timeout", &self.timeout)
            .field("build", &self.build)
            .field("strict", &self.strict)
            .field("data", &self.data.is_some())
            .field("progress", &self.progress.is_some())
            .finish()
    }
}

impl RunOptions {
    /// Returns the default options with the caller's tensors.
    pub fn with_data(data: RunData) -> Self {
        Self {
            data: Some(Arc::new(data)),
            ..Self::default()
        }
    }

    /// Returns the inputs of a run: the caller's, or random ones.
    fn inputs(&self, work: &dyn AnyWorkload) -> Vec<HostTensor> {
        match &self.data {
            Some(data) => data.inputs.clone(),
            None => work.draw(self.seed),
        }
    }

    /// Returns the reference of a run: the caller's, or a computed one.
    fn reference(&self, work: &dyn AnyWorkload, inputs: &[HostTensor]) -> Vec<Vec<(f64, f64)>> {
        let reference = self.data.as_ref().and_then(|data| data.reference.clone());
        reference.unwrap_or_else(|| work.reference(inputs))
    }

    pub(crate) fn report_progress(&self, phase: RunPhase) {
        if let Some(progress) = &self.progress {
            progress(phase);
        }
    }
}

/// The input of a device run.
pub(crate) struct Job<'a> {
    pub(crate) prepared: &'a Prepared,
    pub(crate) inputs: &'a [HostTensor],
    pub(crate) outputs: &'a [TensorSpec],
    pub(crate) options: &'a RunOptions,
}

impl Job<'_> {
    /// Checks that the tensors are as large as the extents that the kernels declare. The CPU executor
    /// checks them against its own memory.
    pub(crate) fn check_extents(&self) -> Result<(), Error> {
        let inputs = self.inputs.iter().map(|tensor| tensor.data.len());
        let outputs = self.outputs.iter().map(TensorSpec::bytes);
        let known = |bytes: usize| Some(bytes as u64);
        self.prepared.check_extents(&BufferBytes {
            inputs: inputs.map(known).collect(),
            outputs: outputs.map(known).collect(),
            workspace: self.prepared.workspace,
        })
    }
}

/// The result of a device run.
pub(crate) struct RunResult {
    /// The outputs of the first run.
    pub(crate) outputs: Vec<DeviceOutput>,
    /// Whether all repeats produced the same bits.
    pub(crate) same_bits: bool,
    /// The seconds of each timed run.
    pub(crate) seconds: Vec<f64>,
    /// The counters of the CPU executor, by step; empty on a GPU.
    pub(crate) stats: Vec<Stats>,
    /// The time to build, check and load the kernels.
    pub(crate) build: BuildTimes,
    /// The origin of the GPU code, by step; empty on the CPU executor.
    pub(crate) origins: Vec<CodeOrigin>,
}

/// Runs the watchdog build of a workload once on a GPU, without a comparison. A hang is an
/// [`Error::HangReport`], after which this process cannot use the device: run it in a
/// [`child`](crate::child).
pub fn run_watchdog(
    work: &dyn AnyWorkload,
    device: &Device,
    options: &RunOptions,
) -> Result<(), Error> {
    estimate::check_host_memory(work)?;
    let prepared = prepare(work, &device.target())?;
    let job = Job {
        prepared: &prepared,
        inputs: &options.inputs(work),
        outputs: &work.outputs(),
        options,
    };
    gpu::watch::run(&job, device).map(|_| ())
}

/// Runs a workload on a device and compares every output with the reference.
///
/// A wrong result is a [`RunReport`] that did not pass, not an error.
///
/// ```
/// use warpline::kernels::{DeviceKind, registry};
/// use warpline::{Device, RunOptions, run};
///
/// # fn main() -> Result<(), warpline::Error> {
/// let device = Device::cpu();
/// let work = registry()[0].default_workload(DeviceKind::Cpu, &device.target())?;
/// let report = run(work.as_ref(), &device, &RunOptions::default())?;
/// assert!(report.passed() && report.device.is_cpu);
/// # Ok(())
/// # }
/// ```
pub fn run(
    work: &dyn AnyWorkload,
    device: &Device,
    options: &RunOptions,
) -> Result<RunReport, Error> {
    run_with_tensors(work, device, options).map(|(report, _)| report)
}

/// The tensors of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct RunTensors {
    /// The inputs.
    pub inputs: Vec<HostTensor>,
    /// The outputs of the first run.
    pub outputs: Vec<HostTensor>,
}

/// Runs a workload as [`run()`] does, and also returns the tensors.
///
/// ```
/// use warpline::kernels::{DeviceKind, registry};
/// use warpline::{Device, RunOptions, run_with_tensors};
///
/// # fn main() -> Result<(), warpline::Error> {
/// let device = Device::cpu();
/// let work = registry()[1].default_workload(DeviceKind::Cpu, &device.target())?;
/// let (report, tensors) = run_with_tensors(work.as_ref(), &device, &RunOptions::default())?;
/// assert_eq!(report.elements(), tensors.outputs[0].spec.elements());
/// # Ok(())
/// # }
/// ```
pub fn run_with_tensors(
    work: &dyn AnyWorkload,
    device: &Device,
    options: &RunOptions,
) -> Result<(RunReport, RunTensors), Error> {
    if device.is_cpu() {
        estimate::check_simulation_time(work, options)?;
    }
    estimate::check_host_memory(work)?;
    let prepared = prepare(work, &device.target())?;

    options.report_progress(RunPhase::Inputs);
    let inputs = options.inputs(work);
    work.check_values(&inputs)?;
    let outputs = work.outputs();
    let job = Job {
        prepared: &prepared,
        inputs: &inputs,
        outputs: &outputs,
        options,
    };
    let done = match device.context() {
        None => cpu::run(&job)?,
        Some(_) => match options.build {
            Build::Final => gpu::run(&job, device)?,
            Build::Watchdog => gpu::watch::run(&job, device)?,
        },
    };

    options.report_progress(RunPhase::Compare);
    let reference = options.reference(work, &inputs);
    let no_reference = Vec::new();
    let compared: Vec<Comparison> = (outputs.iter().zip(&done.outputs).enumerate())
        .map(|(i, (spec, produced))| {
            compare(spec, produced, reference.get(i).unwrap_or(&no_reference))
        })
        .collect();

    let info = device.info();
    let (cost, times) = (work.cost(), Times::new(done.seconds));
    let (mut stats, mut origins) = (done.stats.into_iter(), done.origins.into_iter());
    let kernels = prepared
        .steps
        .iter()
        .map(|s| KernelRun::new(s, stats.next(), origins.next()));
    let report = RunReport {
        family: work.family(),
        problem: work.problem(),
        config: prepared.config(work),
        fallback: prepared.fallback.clone(),
        seed: options.seed,
        outputs: compared,
        same_bits: done.same_bits,
        kernels: kernels.collect(),
        rates: Rates::new(&cost, &times, &info),
        device: info,
        times,
        build: done.build,
        cost,
    };
    tracing::info!(
        family = report.family,
        device = report.device.name,
        passed = report.passed(),
        seconds = report.times.median_s,
        "ran"
    );
    let produced = outputs.into_iter().zip(done.outputs);
    let tensors = RunTensors {
        inputs,
        outputs: produced
            .map(|(spec, DeviceOutput { bytes: data, .. })| HostTensor { spec, data })
            .collect(),
    };
    Ok((report, tensors))
}
