//! Runs and times of a whole plan.

use super::buffers::Buffers;
use super::flush::Flush;
use super::ready::{Launches, LoadOptions, Ready};
use crate::device::Device;
use crate::error::Error;
use crate::run::{Done, Job, Phase};
use std::thread;
use std::time::{Duration, Instant};
use warpline_cuda::{Event, Stream};

/// Runs that are timed unless asked for otherwise.
const REPEATS: u32 = 10;

/// Runs the plan once for its outputs, then as often as asked for to take the time.
pub(crate) fn run(job: &Job<'_>, device: &Device) -> Result<Done, Error> {
    job.check_extents()?;
    let mut options = LoadOptions::default();
    options.strict = job.options.strict;
    let ready = job.prepared.load_with(device, &options)?;
    let mut session = Session::new(job, &ready, device)?;
    let done = session.run(job, &ready);
    if matches!(done, Err(Error::Hang { .. })) {
        // Freeing anything would wait for the kernel, which does not end.
        std::mem::forget((session, ready));
    }
    done
}

/// Everything a plan has on the device.
struct Session {
    stream: Stream,
    buffers: Buffers,
    flush: Flush,
    launches: Launches,
    start: Event,
    end: Event,
}

impl Session {
    fn new(job: &Job<'_>, ready: &Ready, device: &Device) -> Result<Self, Error> {
        let context = ready.context();
        let stream = Stream::new(context)?;
        let workspace = job.prepared.workspace;
        let buffers = Buffers::new(context, job.inputs, job.outputs, workspace, &stream)?;
        Ok(Self {
            launches: ready.bind(&buffers.bound())?,
            flush: Flush::new(device)?,
            start: Event::new(context)?,
            end: Event::new(context)?,
            stream,
            buffers,
        })
    }

    fn run(&mut self, job: &Job<'_>, ready: &Ready) -> Result<Done, Error> {
        let repeats = job.options.repeat.map_or(REPEATS, |n| n.get());
        let total = u64::from(repeats) + 1;
        job.options.tell(Phase::Kernels { done: 0, total });
        self.buffers.reset(&self.stream)?;
        self.launch(job)?;
        let first = self.buffers.fetch(&self.stream)?;

        let mut seconds = Vec::new();
        for i in 0..repeats {
            job.options.tell(Phase::Kernels {
                done: u64::from(i) + 1,
                total,
            });
            // The flush also keeps the device busy while the launch is queued.
            self.flush.run(&self.stream)?;
            self.launch(job)?;
            seconds.push(f64::from(self.end.ms_since(&self.start)?) / 1e3);
        }
        Ok(Done {
            same_bits: self.buffers.fetch(&self.stream)? == first,
            outputs: first,
            seconds,
            stats: Vec::new(),
            build: ready.times(),
            origins: ready.origins().collect(),
        })
    }

    /// Launches all steps between the two events, and waits for them.
    fn launch(&mut self, job: &Job<'_>) -> Result<(), Error> {
        self.start.record(&self.stream)?;
        self.launches.launch(&self.stream)?;
        self.end.record(&self.stream)?;
        self.wait(job.options.timeout)
    }

    /// Waits for the end, and gives up after a while.
    fn wait(&self, timeout: Duration) -> Result<(), Error> {
        let deadline = Instant::now() + timeout;
        while !self.end.is_done()? {
            if Instant::now() > deadline {
                return Err(Error::Hang {
                    kernel: self.launches.names().next().unwrap_or_default().to_owned(),
                    device: format!("cuda:{}", self.stream.context().device().ordinal),
                    seconds: timeout.as_secs(),
                });
            }
            thread::sleep(Duration::from_micros(20));
        }
        Ok(())
    }
}
