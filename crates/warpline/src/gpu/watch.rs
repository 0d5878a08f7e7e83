//! Watchdog builds: plans whose hangs are reported instead of waited for.
//!
//! Each kernel is launched by itself in its watched form, which gives up waits
//! that take too long and notes in host memory what its warps wait for. What
//! it cannot give up ends with the process: where a report is asked for, call
//! this in a [child](crate::child).

use super::buffers::Buffers;
use super::code::Origin;
use super::ready::{BuildTimes, LoadOptions, Ready};
use crate::device::Device;
use crate::error::Error;
use crate::prepare::{Prepared, PreparedStep};
use crate::run::{Done, Job, Phase};
use std::thread;
use std::time::{Duration, Instant};
use warpline_cuda::{Buffer as Memory, Context, Event, HostBuffer, Stream};
use warpline_ir::Kernel;
use warpline_kernels::{Bound, Buffer, HostTensor, Step, TensorSpec};
use warpline_watchdog::{Limits, Watched, watch};

/// How long one kernel may take. Waits that can be given up are given up
/// long before.
const LIMIT: Duration = Duration::from_millis(1500);

/// Runs the plan once.
pub(crate) fn run(job: &Job<'_>, device: &Device) -> Result<Done, Error> {
    job.check_extents()?;
    let context = device.context().ok_or(Error::NoGpu)?;
    let stream = Stream::new(context)?;
    let workspace = job.prepared.workspace;
    let mut buffers = Buffers::new(context, job.inputs, job.outputs, workspace, &stream)?;
    buffers.reset(&stream)?;
    let mut watch = Watch::new(device, context, &stream, job.options.timeout.min(LIMIT));
    watch.options.strict = job.options.strict;
    watch.build = job.prepared.times;
    let total = job.prepared.steps.len() as u64;
    for (done, step) in (0..).zip(&job.prepared.steps) {
        job.options.tell(Phase::Kernels { done, total });
        if let Err(e) = watch.launch(step.step(), buffers.bound()) {
            if watch.runs_on {
                std::mem::forget((buffers, stream));
            }
            return Err(e);
        }
    }
    Ok(Done {
        outputs: buffers.fetch(&stream)?,
        same_bits: true,
        seconds: vec![watch.seconds],
        stats: Vec::new(),
        build: watch.build,
        origins: watch.origins,
    })
}

/// Launches a kernel that takes no arguments in its watched form, whatever the
/// checker says of it; a hang is an [`Error::HangReport`].
pub fn alone(kernel: &Kernel, grid: [u32; 3], device: &Device) -> Result<(), Error> {
    let context = device.context().ok_or(Error::NoGpu)?;
    let stream = Stream::new(context)?;
    let step = Step::new(kernel.clone(), grid);
    let mut watch = Watch::new(device, context, &stream, LIMIT);
    let ended = watch.launch(&step, Bound::default());
    if watch.runs_on {
        std::mem::forget(stream);
    }
    ended
}

/// Launches a kernel on tensors in its watched form, whatever the checker says
/// of it; a hang is an [`Error::HangReport`].
pub fn step(
    step: &Step,
    inputs: &[HostTensor],
    outputs: &[TensorSpec],
    workspace: u64,
    device: &Device,
) -> Result<(), Error> {
    let context = device.context().ok_or(Error::NoGpu)?;
    let stream = Stream::new(context)?;
    let mut buffers = Buffers::new(context, inputs, outputs, workspace, &stream)?;
    buffers.reset(&stream)?;
    let mut watch = Watch::new(device, context, &stream, LIMIT);
    let ended = watch.launch(step, buffers.bound());
    if watch.runs_on {
        std::mem::forget((buffers, stream));
    }
    ended
}

/// Launches of watched kernels, one after the other.
struct Watch<'a> {
    device: &'a Device,
    context: &'a Context,
    stream: &'a Stream,
    options: LoadOptions,
    limit: Duration,
    build: BuildTimes,
    origins: Vec<Origin>,
    /// What all launches together took.
    seconds: f64,
    /// Has a kernel not ended? Freeing what it uses would wait for it.
    runs_on: bool,
}

impl<'a> Watch<'a> {
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
            runs_on: false,
        }
    }

    /// Launches the watched form of a step, and waits for its end or a report.
    fn launch(&mut self, step: &Step, mut bound: Bound) -> Result<(), Error> {
        let watched = watch(&step.kernel, &Limits::default()).map_err(|e| Error::Launch {
            kernel: step.kernel.name.clone(),
            why: e.to_string(),
        })?;
        let notes = HostBuffer::zeroed(self.context, watched.notes_bytes(step.grid))?;
        let mut abort = Memory::alloc(self.context, Watched::ABORT_BYTES)?;
        abort.fill(0, self.stream)?;
        let ready = self.load(&watched, step, bound.inputs.len())?;
        bound.inputs.extend([notes.address(), abort.address()]);
        let launches = ready.bind(&bound)?;
        let [start, end] = [Event::new(self.context)?, Event::new(self.context)?];
        start.record(self.stream)?;
        launches.launch(self.stream)?;
        end.record(self.stream)?;
        let ended = wait(&end, self.limit);
        let words = read(&notes)?;
        self.runs_on = matches!(ended, Ok(false));
        if self.runs_on || watched.gave_up(&words) {
            if self.runs_on {
                std::mem::forget((notes, abort, ready, launches, start, end));
            }
            let hang = watched.hang(&words, step.grid);
            return Err(Error::HangReport(hang.to_string()));
        }
        ended?;
        self.seconds += f64::from(end.ms_since(&start)?) / 1e3;
        Ok(())
    }

    /// The watched kernel on the device. Its two arguments more come after the
    /// inputs of the plan.
    fn load(&mut self, watched: &Watched, step: &Step, inputs: usize) -> Result<Ready, Error> {
        let [notes, abort] = watched.params();
        let step = step
            .of_kernel(watched.kernel.clone())
            .pointer(notes, Buffer::Input(inputs))
            .pointer(abort, Buffer::Input(inputs + 1));
        let prepared = Prepared {
            steps: vec![PreparedStep::unproved(step, "a watchdog build")],
            workspace: 0,
            times: BuildTimes::default(),
            fallback: None,
        };
        let ready = prepared.load_with(self.device, &self.options)?;
        self.build.print += ready.times().print;
        self.build.jit += ready.times().jit;
        self.origins.extend(ready.origins());
        Ok(ready)
    }
}

/// Waits for an event; says whether it came in time.
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

/// All notes, as they are now.
fn read(notes: &HostBuffer) -> Result<Vec<u64>, Error> {
    let words = (0..notes.len()).step_by(8).map(|at| notes.u64(at));
    Ok(words.collect::<Result<_, _>>()?)
}
