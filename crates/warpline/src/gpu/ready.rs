//! A plan on a device, and its launches.

use super::args::args;
use super::code::Origin;
use super::footprint::Footprint;
use super::kernel::OnDevice;
use crate::device::Device;
use crate::error::Error;
use crate::prepare::{Prepared, PreparedStep};
use serde::ser::{Serialize, SerializeStruct, Serializer};
use std::sync::Arc;
use std::time::Duration;
use warpline_cuda::{Args, Context, JitOptions, LaunchConfig, Stream, launch};
use warpline_kernels::Bound;

/// How long each stage took from a problem to kernels on a device. What was
/// already there took no time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct BuildTimes {
    /// Planning the work and building its kernels.
    pub build: Duration,
    /// Checking them.
    pub check: Duration,
    /// Printing them as PTX; none on the simulator.
    pub print: Duration,
    /// Compiling them by the driver, or reading them from disk, and loading
    /// them; none on the simulator.
    pub jit: Duration,
}

impl BuildTimes {
    /// All stages together.
    pub fn total(&self) -> Duration {
        self.build + self.check + self.print + self.jit
    }
}

impl Serialize for BuildTimes {
    /// In milliseconds, by stage.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let ms = |d: Duration| d.as_secs_f64() * 1e3;
        let mut fields = to.serialize_struct("BuildTimes", 4)?;
        fields.serialize_field("build_ms", &ms(self.build))?;
        fields.serialize_field("check_ms", &ms(self.check))?;
        fields.serialize_field("print_ms", &ms(self.print))?;
        fields.serialize_field("jit_ms", &ms(self.jit))?;
        fields.end()
    }
}

/// How kernels are brought onto a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct LoadOptions {
    /// Refuses a kernel that the driver did not compile as it was written,
    /// where otherwise a warning is emitted.
    pub strict: bool,
    /// What is asked of the driver's compiler.
    pub jit: JitOptions,
}

/// A plan whose kernels are all on a device: what is left is to give it
/// buffers and launch it, as often as one likes and from any thread.
#[derive(Clone, Debug)]
pub struct Ready {
    context: Context,
    steps: Vec<Step>,
    times: BuildTimes,
}

#[derive(Clone, Debug)]
struct Step {
    prepared: PreparedStep,
    kernel: Arc<OnDevice>,
    origin: Origin,
}

impl Ready {
    pub(crate) fn new(
        prepared: &Prepared,
        device: &Device,
        options: &LoadOptions,
    ) -> Result<Self, Error> {
        let gpu = device.gpu().ok_or(Error::NoGpu)?;
        let mut times = prepared.times;
        let one = |step: &PreparedStep| -> Result<Step, Error> {
            let (kernel, took) = gpu.kernel(step, &options.jit)?;
            if options.strict {
                kernel.as_written()?;
            }
            times.print += took.print;
            times.jit += took.jit;
            Ok(Step {
                prepared: step.clone(),
                origin: took.origin,
                kernel,
            })
        };
        let steps = prepared.steps.iter().map(one);
        Ok(Self {
            steps: steps.collect::<Result<_, _>>()?,
            context: gpu.context.clone(),
            times,
        })
    }

    /// How long it took to get here.
    pub fn times(&self) -> BuildTimes {
        self.times
    }

    /// How many times the driver compiled a kernel for this: none where all
    /// were in this process or on disk. One that is loaded whole counts, though
    /// the driver may have it in a cache of its own.
    pub fn jits(&self) -> usize {
        let compiled = |origin: &Origin| matches!(origin, Origin::Compiled | Origin::CompiledWhole);
        self.origins().filter(compiled).count()
    }

    /// Where the code of each kernel came from, in order.
    pub fn origins(&self) -> impl Iterator<Item = Origin> {
        self.steps.iter().map(|step| step.origin)
    }

    /// What each kernel needs, in order.
    pub fn footprints(&self) -> impl Iterator<Item = Footprint> {
        self.steps.iter().map(|step| step.kernel.footprint())
    }

    /// The driver's context on the device.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The launches on these buffers, with arguments and tensor maps encoded.
    ///
    /// The addresses must be those of buffers as long as the plan's tensors,
    /// which live until the last launch has ended.
    pub fn bind(&self, bound: &Bound) -> Result<Launches, Error> {
        let one = |step: &Step| -> Result<Launch, Error> {
            let launch = step.prepared.launch(bound)?;
            if step.prepared.kernel.co_resident {
                step.kernel.holds(launch.grid)?;
            }
            Ok(Launch {
                config: (step.kernel.config(launch.grid)).dependent(step.prepared.is_dependent()),
                args: args(&launch, &self.context)?,
                kernel: step.kernel.clone(),
            })
        };
        Ok(Launches {
            all: self.steps.iter().map(one).collect::<Result<_, _>>()?,
        })
    }

    /// Binds the buffers and launches once.
    pub fn launch(&self, stream: &Stream, bound: &Bound) -> Result<(), Error> {
        self.bind(bound)?.launch(stream)
    }
}

/// A plan with its buffers: every launch is one call of the driver per kernel.
#[derive(Debug)]
pub struct Launches {
    all: Vec<Launch>,
}

#[derive(Debug)]
struct Launch {
    kernel: Arc<OnDevice>,
    config: LaunchConfig,
    args: Args,
}

impl Launches {
    /// Puts the plan's kernels into a stream, in order. Allocates nothing,
    /// waits for nothing, and can be captured in a graph.
    pub fn launch(&self, stream: &Stream) -> Result<(), Error> {
        for one in &self.all {
            launch(&one.kernel.function, &one.config, stream, &one.args)?;
        }
        Ok(())
    }

    /// The names of the kernels, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|one| one.kernel.function.name())
    }
}
