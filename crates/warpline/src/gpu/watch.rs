//! Runs of watchdog builds, which report hangs.
//!
//! Each kernel is launched separately. Its watchdog build aborts waits that take too long and records
//! the waits of its warps in host memory. Some waits cannot be aborted and end only with the
//! process, so run this in a [child](crate::child).

use super::buffers::Buffers;
use super::code::CodeOrigin;
use super::loaded_plan::{BuildTimes, LoadOptions, LoadedPlan};
use crate::device::Device;
use crate::error::Error;
use crate::prepare::{Prepared, PreparedStep};
use crate::run::{Job, RunPhase, RunResult};
use std::thread;
use std::time::{Duration, Instant};
use warpline_cuda::{Context, DeviceBuffer, Event, HostBuffer, Stream};
use warpline_ir::Kernel;
use warpline_kernels::{Buffer, BufferAddresses, HostTensor, LaunchStep, TensorSpec};
use warpline_watchdog::{TimeLimits, WatchedKernel, watch};

/// The time limit of one kernel, much longer than that of an abortable wait.
const KERNEL_LIMIT: Duration = Duration::from_millis(1500);

/// Runs the plan once.
pub(crate) fn run(job: &Job<'_>, device: &Device) -> Result<RunResult, Error> {
    job.check_extents()?;
    let context = device.context().ok_or(Error::NoGpu)?;
    let stream = Stream::new(context)?;
    let workspace = job.prepared.workspace;
    let mut buffers = Buffers::new(context, job.inputs, job.outputs, workspace, &stream)?;
    buffers.reset(&stream)?;
    let mut runner = WatchRunner::new(
        device,
        context,
        &stream,
        job.options.timeout.min(KERNEL_LIMIT),
    );
    runner.options.strict = job.options.strict;
    runner.build = job.prepared.times;
    let total = job.prepared.steps.len() as u64;
    for (done, step) in (0..).zip(&job.prepared.steps) {
        job.options
            .report_progress(RunPhase::Kernels { done, total });
        if let Err(e) = runner.launch(step.step(), buffers.addresses()) {
            if runner.is_hung {
                std::mem::forget((buffers, stream));
            }
            return Err(e);
        }
    }
    Ok(RunResult {
        outputs: buffers.read_outputs(&stream)?,
        same_bits: true,
        seconds: vec![runner.seconds],
        stats: Vec::new(),
        build: runner.build,
        origins: runner.origins,
    })
}

/// Launches the watchdog build of a kernel without arguments, even if it is not proved. A hang is an
/// [`Error::HangReport`].
pub fn run_kernel(kernel: &Kernel, grid: [u32; 3], device: &Device) -> Result<(), Error> {
    let context = device.context().ok_or(Error::NoGpu)?;
    let stream = Stream::new(context)?;
    let step = LaunchStep::new(kernel.clone(), grid);
    let mut runner = WatchRunner::new(device, context, &stream, KERNEL_LIMIT);
    let result = runner.launch(&step, BufferAddresses::default());
    if runner.is_hung {
        std::mem::forget(stream);
    }
    result
}

/// Launches the watchdog build of a step on tensors, even if its kernel is not proved. A hang is an
/// [`Error::HangReport`].
pub fn run_step(
    step: &LaunchStep,
    inputs: &[HostTensor],
    outputs: &[TensorSpec],
    workspace: u64,
    device: &Device,
) -> Result<(), Error> {
    let context = device.context().ok_or(Error::NoGpu)?;
    let stream = Stream::new(context)?;
    let mut buffers = Buffers::new(context, inputs, outputs, workspace, &stream)?;
    buffers.reset(&stream)?;
    let mut runner = WatchRunner::new(device, context, &stream, KERNEL_LIMIT);
    let result = runner.launch(step, buffers.addresses());
    if runner.is_hung {
        std::mem::forget((buffers, stream));
    }
    result
}

/// Launches watchdog builds, one after the other.
struct WatchRunner<'a> {
    device: &'a Device,
    context: &'a Context,
    stream: &'a Stream,
    options: LoadOptions,
    limit: Duration,
    build: BuildTimes,
    origins: Vec<CodeOrigin>,
    /// The seconds of all launches.
    seconds: f64,
    /// Whether a kernel has not ended. Freeing its buffers would wait for it.
    is_hung: bool,
}

impl<'a> WatchRunner<'a> {
    fn new(device: &'a Device, context: &'a Context, stream: &'a Stream, limit: Duration) -> Self {
        Self {
            device,
            context,
            stream,
            limit,
            options: LoadOptions::default(),
            build: BuildTimes::default(),
            origins: Vec::new(),
            seconds: 0.0,
            is_hung: false,
        }
    }

    /// Launches the watchdog build of a step and waits for its end or a hang report.
    fn launch(&mut self, step: &LaunchStep, mut addresses: BufferAddresses) -> Result<(), Error> {
        let watched = watch(&step.kernel, &TimeLimits::default()).map_err(|e| Error::Launch {
            kernel: step.kernel.name.clone(),
            why: e.to_string(),
        })?;
        let status = HostBuffer::zeroed(self.context, watched.status_bytes(step.grid))?;
        let mut abort = DeviceBuffer::alloc(self.context, WatchedKernel::ABORT_BYTES)?;
        abort.fill(0, self.stream)?;
        let loaded = self.load(&watched, step, addresses.inputs.len())?;
        addresses.inputs.extend([status.address(), abort.address()]);
        let plan = loaded.bind(&addresses)?;
        let [start, end] = [Event::new(self.context)?, Event::new(self.context)?];
        start.record(self.stream)?;
        plan.launch(self.stream)?;
        end.record(self.stream)?;
        let ended = wait(&end, self.limit);
        let words = read_status(&status)?;
        self.is_hung = matches!(ended, Ok(false));
        if self.is_hung || watched.has_timed_out(&words) {
            if self.is_hung {
                std::mem::forget((status, abort, loaded, plan, start, end));
            }
            let hang = watched.read_hang(&words, step.grid);
            return Err(Error::HangReport(hang.to_string()));
        }
        ended?;
        self.seconds += f64::from(end.ms_since(&start)?) / 1e3;
        Ok(())
    }

    /// Loads a watchdog build. Its two additional arguments follow the inputs of the plan.
    fn load(
        &mut self,
        watched: &WatchedKernel,
        step: &LaunchStep,
        inputs: usize,
    ) -> Result<LoadedPlan, Error> {
        let [status, abort] = watched.params();
        let step = step
            .with_kernel(watched.kernel.clone())
            .pointer(status, Buffer::Input(inputs))
            .pointer(abort, Buffer::Input(inputs + 1));
        let prepared = Prepared {
            steps: vec![PreparedStep::unproved(step, "a watchdog build")],
            workspace: 0,
            times: BuildTimes::default(),
            fallback: None,
        };
        let loaded = prepared.load_with(self.device, &self.options)?;
        self.build.print += loaded.times().print;
        self.build.jit += loaded.times().jit;
        self.origins.extend(loaded.origins());
        Ok(loaded)
    }
}

/// Waits for an event. Returns whether it completed within the limit.
fn wait(end: &Event, limit: Duration) -> Result<bool, Error> {
    let deadline = Instant::now() + limit;
    while !end.is_done()? {
        if Instant::now() > deadline {
            return Ok(false);
        }
        thread::sleep(Duration::from_micros(50));
    }
    Ok(true)
}

/// Reads the status words.
fn read_status(status: &HostBuffer) -> Result<Vec<u64>, Error> {
    let words = (0..status.len()).step_by(8).map(|at| status.u64(at));
    Ok(words.collect::<Result<_, _>>()?)
}
