//! Plans with loaded kernels, and plans bound to buffers.

use super::args::encode_args;
use super::code::CodeOrigin;
use super::footprint::Footprint;
use super::kernel::LoadedKernel;
use super::rebound_plan::ReboundPlan;
use crate::device::Device;
use crate::error::Error;
use crate::prepare::{Prepared, PreparedStep};
use serde::ser::{Serialize, SerializeStruct, Serializer};
use std::sync::Arc;
use std::time::Duration;
use warpline_cuda::{Args, Context, JitOptions, LaunchConfig, Stream, launch};
use warpline_kernels::BufferAddresses;

/// The time of each stage from a problem to loaded kernels. Cached stages take no time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct BuildTimes {
    /// Planning the workload and building its kernels.
    pub build: Duration,
    /// Checking the kernels.
    pub check: Duration,
    /// Printing PTX; 0 on the CPU executor.
    pub print: Duration,
    /// Compiling with the driver or reading from disk, and loading; 0 on the CPU executor.
    pub jit: Duration,
}

impl BuildTimes {
    /// Returns the sum of all stages.
    pub fn total(&self) -> Duration {
        self.build + self.check + self.print + self.jit
    }
}

impl Serialize for BuildTimes {
    /// Serializes milliseconds by stage.
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

/// Options of [`Prepared::load_with`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct LoadOptions {
    /// Rejects a kernel with compiler advisories that change it; by default they are warnings.
    pub strict: bool,
    /// The options of the driver's compiler.
    pub jit: JitOptions,
}

/// A plan whose kernels are all loaded. It can be bound to buffers and launched any number of times,
/// from any thread.
#[derive(Clone, Debug)]
pub struct LoadedPlan {
    context: Context,
    steps: Vec<LoadedStep>,
    times: BuildTimes,
}

#[derive(Clone, Debug)]
struct LoadedStep {
    prepared: PreparedStep,
    kernel: Arc<LoadedKernel>,
    origin: CodeOrigin,
}

impl LoadedPlan {
    pub(crate) fn new(
        prepared: &Prepared,
        device: &Device,
        options: &LoadOptions,
    ) -> Result<Self, Error> {
        let gpu = device.gpu().ok_or(Error::NoGpu)?;
        let mut times = prepared.times;
        let load_step = |step: &PreparedStep| -> Result<LoadedStep, Error> {
            let (kernel, cost) = gpu.kernel(step, &options.jit)?;
            if options.strict {
                kernel.check_advisories()?;
            }
            times.print += cost.print;
            times.jit += cost.jit;
            Ok(LoadedStep {
                prepared: step.clone(),
                origin: cost.origin,
                kernel,
            })
        };
        let steps = prepared.steps.iter().map(load_step);
        Ok(Self {
            steps: steps.collect::<Result<_, _>>()?,
            context: gpu.context.clone(),
            times,
        })
    }

    /// Returns the time of each stage.
    pub fn times(&self) -> BuildTimes {
        self.times
    }

    /// Returns the number of kernels that the driver compiled. Kernels from this process or from disk
    /// do not count. A whole program counts, although the driver may have cached it.
    pub fn jits(&self) -> usize {
        let compiled = |origin: &CodeOrigin| {
            matches!(origin, CodeOrigin::Compiled | CodeOrigin::CompiledWhole)
        };
        self.origins().filter(compiled).count()
    }

    /// Returns the origin of each kernel's code, in order.
    pub fn origins(&self) -> impl Iterator<Item = CodeOrigin> {
        self.steps.iter().map(|step| step.origin)
    }

    /// Returns the resources of each kernel, in order.
    pub fn footprints(&self) -> impl Iterator<Item = Footprint> {
        self.steps.iter().map(|step| step.kernel.footprint())
    }

    /// Returns the CUDA context.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Binds the plan to buffers: encodes arguments and tensor maps.
    ///
    /// The buffers must be as large as the plan's tensors and must outlive the last launch.
    pub fn bind(&self, addresses: &BufferAddresses) -> Result<BoundPlan, Error> {
        let bind_step = |step: &LoadedStep| -> Result<BoundLaunch, Error> {
            let launch = step.prepared.launch(addresses)?;
            if step.prepared.kernel.co_resident {
                step.kernel.check_co_resident(launch.grid)?;
            }
            Ok(BoundLaunch {
                config: (step.kernel.config(launch.grid)).dependent(step.prepared.is_dependent()),
                args: encode_args(&launch, &self.context)?,
                kernel: step.kernel.clone(),
            })
        };
        Ok(BoundPlan {
            launches: self.steps.iter().map(bind_step).collect::<Result<_, _>>()?,
        })
    }

    /// Binds the plan to buffers, so that it can be bound to others cheaply.
    pub(crate) fn bind_again(&self, addresses: &BufferAddresses) -> Result<ReboundPlan, Error> {
        let steps = self.steps.iter().map(|step| &step.prepared);
        Ok(ReboundPlan::new(
            self.bind(addresses)?,
            steps,
            &self.context,
            addresses,
        ))
    }

    /// Binds the plan to buffers and launches it once.
    pub fn launch(&self, stream: &Stream, addresses: &BufferAddresses) -> Result<(), Error> {
        self.bind(addresses)?.launch(stream)
    }
}

/// A loaded plan that is bound to buffers. A launch is one driver call per kernel.
#[derive(Debug)]
pub struct BoundPlan {
    launches: Vec<BoundLaunch>,
}

#[derive(Debug)]
struct BoundLaunch {
    kernel: Arc<LoadedKernel>,
    config: LaunchConfig,
    args: Args,
}

impl BoundPlan {
    /// Enqueues the plan's kernels in a stream, in order. Neither allocates nor waits, so a CUDA graph
    /// can capture it.
    pub fn launch(&self, stream: &Stream) -> Result<(), Error> {
        for bound in &self.launches {
            launch(&bound.kernel.function, &bound.config, stream, &bound.args)?;
        }
        Ok(())
    }

    /// Returns the arguments of a launch.
    pub(super) fn args(&mut self, launch: usize) -> Option<&mut Args> {
        self.launches.get_mut(launch).map(|bound| &mut bound.args)
    }

    /// Returns the names of the kernels, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.launches
            .iter()
            .map(|bound| bound.kernel.function.name())
    }
}
