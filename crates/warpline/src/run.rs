//! From work to outcome: plan, check, run, compare.

use crate::compare::{Comparison, Produced, compare};
use crate::device::Device;
use crate::error::Error;
use crate::estimate;
use crate::gpu::{BuildTimes, Origin};
use crate::outcome::{KernelRun, Outcome, Rates, Times};
use crate::prepare::{Prepared, prepare};
use crate::{cpu, gpu};
use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;
use warpline_cpu::{Stats, Timing};
use warpline_kernels::{AnyWork, BufferBytes, HostTensor, TensorSpec};

/// How far a run has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Phase {
    /// The inputs are drawn.
    Inputs,
    /// Kernels run; the simulator tells how many CTAs are done of how many.
    Kernels {
        /// CTAs that are done.
        done: u64,
        /// CTAs of all kernels and repeats.
        total: u64,
    },
    /// The reference is computed and the outputs are compared with it.
    Compare,
}

/// Told how far a run has come.
pub type Progress = Arc<dyn Fn(Phase) + Send + Sync>;

/// Which program of a kernel a GPU runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Build {
    /// As it was written.
    #[default]
    Final,
    /// With bounded waits, so that a hang is reported and not waited for.
    Watchdog,
}

/// How to run.
#[derive(Clone)]
#[non_exhaustive]
pub struct RunOptions {
    /// Draws the inputs, and the moments of [`Timing::Random`].
    pub seed: u64,
    /// When the simulator completes asynchronous work.
    pub timing: Timing,
    /// Runs that are timed: by default 1 on the simulator and 10 on a GPU.
    pub repeat: Option<NonZeroU32>,
    /// Lets the simulator work for longer than 30 s.
    pub simulate: bool,
    /// Host threads of the simulator; 0 takes all. The result does not depend on it.
    pub threads: usize,
    /// How long a GPU may take for one run before it counts as hung.
    pub timeout: Duration,
    /// Which program of each kernel a GPU runs.
    pub build: Build,
    /// Refuses a kernel that the driver did not compile as it was written,
    /// where otherwise a warning is emitted.
    pub strict: bool,
    /// The inputs to run on, in place of those that the seed draws.
    pub data: Option<Arc<RunData>>,
    /// Told how far the run has come.
    pub progress: Option<Progress>,
}

/// Tensors that a caller gives to a run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RunData {
    /// The inputs, in the order of the work's own.
    pub inputs: Vec<HostTensor>,
    /// For each output every value and its error bound; the work's own reference if none.
    pub reference: Option<Vec<Vec<(f64, f64)>>>,
}

impl RunData {
    /// Inputs whose reference the work computes.
    pub fn new(inputs: Vec<HostTensor>) -> Self {
        Self {
            inputs,
            reference: None,
        }
    }

    /// The same inputs with a reference of the caller's own.
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
    /// The default options, on the caller's tensors.
    pub fn with_data(data: RunData) -> Self {
        Self {
            data: Some(Arc::new(data)),
            ..Self::default()
        }
    }

    /// The inputs of a run: given, or drawn from the seed.
    fn inputs(&self, work: &dyn AnyWork) -> Vec<HostTensor> {
        match &self.data {
            Some(data) => data.inputs.clone(),
            None => work.draw(self.seed),
        }
    }

    /// What the outputs of a run are compared with.
    fn reference(&self, work: &dyn AnyWork, inputs: &[HostTensor]) -> Vec<Vec<(f64, f64)>> {
        let given = self.data.as_ref().and_then(|data| data.reference.clone());
        given.unwrap_or_else(|| work.reference(inputs))
    }

    pub(crate) fn tell(&self, phase: Phase) {
        if let Some(progress) = &self.progress {
            progress(phase);
        }
    }
}

/// What a device is given.
pub(crate) struct Job<'a> {
    pub(crate) prepared: &'a Prepared,
    pub(crate) inputs: &'a [HostTensor],
    pub(crate) outputs: &'a [TensorSpec],
    pub(crate) options: &'a RunOptions,
}

impl Job<'_> {
    /// Checks the extents that the kernels declare against the tensors. The simulator checks
    /// them against its own memory.
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

/// What a device gives back.
pub(crate) struct Done {
    /// The outputs of the first run.
    pub(crate) outputs: Vec<Produced>,
    /// Did every repeat give the same bits?
    pub(crate) same_bits: bool,
    /// Seconds of each timed run.
    pub(crate) seconds: Vec<f64>,
    /// What the simulator counted, by step; empty on a GPU.
    pub(crate) stats: Vec<Stats>,
    /// How long it took until the kernels could be launched.
    pub(crate) build: BuildTimes,
    /// Where a GPU's code came from, by step; empty on the simulator.
    pub(crate) origins: Vec<Origin>,
}

/// Runs work once on a GPU as its watchdog build, and compares nothing: a hang
/// is an [`Error::HangReport`], after which the device is of no use to this
/// process ([`child`](crate::child)).
pub fn watch(work: &dyn AnyWork, device: &Device, options: &RunOptions) -> Result<(), Error> {
    estimate::fits_host(work)?;
    let prepared = prepare(work, &device.target())?;
    let job = Job {
        prepared: &prepared,
        inputs: &options.inputs(work),
        outputs: &work.outputs(),
        options,
    };
    gpu::watch::run(&job, device).map(|_| ())
}

/// Runs work on a device and compares every output with the reference.
///
/// A wrong result is an [`Outcome`] that did not pass, not an error.
///
/// ```
/// use warpline::kernels::{Place, registry};
/// use warpline::{Device, RunOptions, run};
///
/// # fn main() -> Result<(), warpline::Error> {
/// let device = Device::cpu();
/// let work = registry()[0].default_work(Place::Cpu, &device.target())?;
/// let outcome = run(work.as_ref(), &device, &RunOptions::default())?;
/// assert!(outcome.passed() && outcome.device.simulator);
/// # Ok(())
/// # }
/// ```
pub fn run(work: &dyn AnyWork, device: &Device, options: &RunOptions) -> Result<Outcome, Error> {
    run_and_keep(work, device, options).map(|(outcome, _)| outcome)
}

/// The tensors of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Tensors {
    /// What went in.
    pub inputs: Vec<HostTensor>,
    /// What came out, as the device left it.
    pub outputs: Vec<HostTensor>,
}

/// The same as [`run()`], with the tensors.
///
/// ```
/// use warpline::kernels::{Place, registry};
/// use warpline::{Device, RunOptions, run_and_keep};
///
/// # fn main() -> Result<(), warpline::Error> {
/// let device = Device::cpu();
/// let work = registry()[1].default_work(Place::Cpu, &device.target())?;
/// let (outcome, tensors) = run_and_keep(work.as_ref(), &device, &RunOptions::default())?;
/// assert_eq!(outcome.elements(), tensors.outputs[0].spec.elements());
/// # Ok(())
/// # }
/// ```
pub fn run_and_keep(
    work: &dyn AnyWork,
    device: &Device,
    options: &RunOptions,
) -> Result<(Outcome, Tensors), Error> {
    if device.is_simulator() {
        estimate::affordable(work, options)?;
    }
    estimate::fits_host(work)?;
    let prepared = prepare(work, &device.target())?;

    options.tell(Phase::Inputs);
    let inputs = options.inputs(work);
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

    options.tell(Phase::Compare);
    let reference = options.reference(work, &inputs);
    let none = Vec::new();
    let compared: Vec<Comparison> = (outputs.iter().zip(&done.outputs).enumerate())
        .map(|(i, (spec, produced))| compare(spec, produced, reference.get(i).unwrap_or(&none)))
        .collect();

    let info = device.info();
    let (cost, times) = (work.cost(), Times::new(done.seconds));
    let (mut stats, mut origins) = (done.stats.into_iter(), done.origins.into_iter());
    let kernels = prepared
        .steps
        .iter()
        .map(|s| KernelRun::new(s, stats.next(), origins.next()));
    let outcome = Outcome {
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
        family = outcome.family,
        device = outcome.device.name,
        passed = outcome.passed(),
        seconds = outcome.times.median_s,
        "ran"
    );
    let produced = outputs.into_iter().zip(done.outputs);
    let tensors = Tensors {
        inputs,
        outputs: produced
            .map(|(spec, Produced { bytes: data, .. })| HostTensor { spec, data })
            .collect(),
    };
    Ok((outcome, tensors))
}
