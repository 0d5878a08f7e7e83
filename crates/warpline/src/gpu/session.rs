//! Timed runs of a plan.

use super::buffers::Buffers;
use super::flush::Flush;
use super::loaded_plan::{BoundPlan, LoadOptions, LoadedPlan};
use crate::device::Device;
use crate::error::Error;
use crate::run::{Job, RunPhase, RunResult};
use std::thread;
use std::time::{Duration, Instant};
use warpline_cuda::{Event, Stream};

/// The default number of timed runs.
const DEFAULT_REPEATS: u32 = 10;

/// Runs the plan once for its outputs, then once per repeat for the time.
pub(crate) fn run(job: &Job<'_>, device: &Device) -> Result<RunResult, Error> {
    job.check_extents()?;
    let mut options = LoadOptions::default();
    options.strict = job.options.strict;
    let loaded = job.prepared.load_with(device, &options)?;
    let mut session = Session::new(job, &loaded, device)?;
    let done = session.run(job, &loaded);
    if matches!(done, Err(Error::Hang { .. })) {
        // Freeing memory would wait for the kernel, which never ends.
        std::mem::forget((session, loaded));
    }
    done
}

/// The device state of a plan.
struct Session {
    stream: Stream,
    buffers: Buffers,
    flush: Flush,
    plan: BoundPlan,
    start: Event,
    end: Event,
}

impl Session {
    fn new(job: &Job<'_>, loaded: &LoadedPlan, device: &Device) -> Result<Self, Error> {
        let context = loaded.context();
        let stream = Stream::new(context)?;
        let workspace = job.prepared.workspace;
        let buffers = Buffers::new(context, job.inputs, job.outputs, workspace, &stream)?;
        Ok(Self {
            plan: loaded.bind(&buffers.addresses())?,
            flush: Flush::new(device)?,
            start: Event::new(context)?,
            end: Event::new(context)?,
            stream,
            buffers,
        })
    }

    fn run(&mut self, job: &Job<'_>, loaded: &LoadedPlan) -> Result<RunResult, Error> {
        let repeats = job.options.repeat.map_or(DEFAULT_REPEATS, |n| n.get());
        let total = u64::from(repeats) + 1;
        job.options
            .report_progress(RunPhase::Kernels { done: 0, total });
        self.buffers.reset(&self.stream)?;
        self.launch(job)?;
        let first = self.buffers.read_outputs(&self.stream)?;

        let (mut seconds, mut same_bits) = (Vec::new(), true);
        for i in 0..repeats {
            job.options.report_progress(RunPhase::Kernels {
                done: u64::from(i) + 1,
                total,
            });
            self.buffers.poison_outputs(&self.stream)?;
            // The flush also keeps the device busy while the host enqueues the launch.
            self.flush.run(&self.stream)?;
            self.launch(job)?;
            seconds.push(f64::from(self.end.ms_since(&self.start)?) / 1e3);
            same_bits &= self.buffers.read_outputs(&self.stream)? == first;
        }
        Ok(RunResult {
            same_bits,
            outputs: first,
            seconds,
            stats: Vec::new(),
            build: loaded.times(),
            origins: loaded.origins().collect(),
        })
    }

    /// Launches all steps between the two events and waits.
    fn launch(&mut self, job: &Job<'_>) -> Result<(), Error> {
        self.start.record(&self.stream)?;
        self.plan.launch(&self.stream)?;
        self.end.record(&self.stream)?;
        self.wait(job.options.timeout)
    }

    /// Waits for the end event, up to `timeout`.
    fn wait(&self, timeout: Duration) -> Result<(), Error> {
        let deadline = Instant::now() + timeout;
        while !self.end.is_done()? {
            if Instant::now() > deadline {
                return Err(Error::Hang {
                    kernel: self.plan.names().next().unwrap_or_default().to_owned(),
                    device: format!("cuda:{}", self.stream.context().device().ordinal),
                    seconds: timeout.as_secs(),
                });
            }
            thread::sleep(Duration::from_micros(20));
        }
        Ok(())
    }
}
