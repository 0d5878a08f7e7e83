//! One launch between two events; many for a second.

use super::contender::Contender;
use super::sensors::{Reading, Sensors};
use crate::device::Device;
use crate::error::Error;
use crate::gpu::flush::Flush;
use std::thread;
use std::time::{Duration, Instant};
use warpline_cuda::{CudaError, Event, Stream};

/// How long one launch may take before it counts as hung.
const TIMEOUT: Duration = Duration::from_secs(60);
/// How long a contender runs alone in a sustained measurement.
const SUSTAINED: Duration = Duration::from_millis(1500);
/// Flushes before a launch, each of twice the cache: the last is still running
/// when the launch is queued, so that the host's part does not count.
const FLUSHES: u32 = 2;
/// How long one batch of a sustained measurement takes.
const BATCH_SECONDS: f64 = 0.05;

/// One timed launch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) seconds: f64,
    pub(crate) reading: Reading,
}

/// A stream with a stopwatch.
pub(crate) struct Timer {
    pub(crate) stream: Stream,
    pub(crate) sensors: Sensors,
    flush: Flush,
    start: Event,
    end: Event,
}

impl Timer {
    pub(crate) fn new(device: &Device) -> Result<Self, Error> {
        let context = device.context().ok_or(Error::NoGpu)?;
        Ok(Self {
            stream: Stream::new(context)?,
            sensors: Sensors::of(context.device().pci.as_deref()),
            flush: Flush::new(device)?,
            start: Event::new(context)?,
            end: Event::new(context)?,
        })
    }

    /// Runs a contender once, untimed.
    pub(crate) fn once(&self, contender: &mut dyn Contender) -> Result<(), Error> {
        contender.enqueue(&self.stream)?;
        self.end.record(&self.stream)?;
        self.wait(contender)
    }

    /// Bytes that are read before each timed launch.
    pub(crate) fn flush_bytes(&self) -> u64 {
        u64::from(FLUSHES) * 2 * self.stream.context().device().l2_bytes
    }

    /// Times one launch with a cold level-2 cache, and reads the sensors
    /// meanwhile if asked for.
    pub(crate) fn time(&self, contender: &mut dyn Contender, read: bool) -> Result<Sample, Error> {
        for _ in 0..FLUSHES {
            self.flush.run(&self.stream)?;
        }
        self.start.record(&self.stream)?;
        contender.enqueue(&self.stream)?;
        self.end.record(&self.stream)?;
        let reading = match read {
            true => self.sensors.read(),
            false => Reading::default(),
        };
        self.wait(contender)?;
        Ok(Sample {
            seconds: self.elapsed()?,
            reading,
        })
    }

    /// Runs a contender alone for more than a second, launch after launch and
    /// nothing flushed; the samples are means over a batch.
    pub(crate) fn sustain(&self, contender: &mut dyn Contender) -> Result<Vec<Sample>, Error> {
        let batch = batch(self.time(contender, false)?.seconds);
        let mut samples = Vec::new();
        let start = Instant::now();
        while start.elapsed() < SUSTAINED {
            self.start.record(&self.stream)?;
            for _ in 0..batch {
                contender.enqueue(&self.stream)?;
            }
            self.end.record(&self.stream)?;
            let reading = self.sensors.read();
            self.wait(contender)?;
            samples.push(Sample {
                seconds: self.elapsed()? / f64::from(batch),
                reading,
            });
        }
        Ok(samples)
    }

    fn elapsed(&self) -> Result<f64, Error> {
        Ok(f64::from(self.end.ms_since(&self.start)?) / 1e3)
    }

    /// Waits for the end of what a contender put into the stream, and gives up
    /// after a while.
    fn wait(&self, contender: &dyn Contender) -> Result<(), Error> {
        let named = |e: CudaError| Error::Contender {
            name: contender.name().to_owned(),
            error: Box::new(e.into()),
        };
        let deadline = Instant::now() + TIMEOUT;
        while !self.end.is_done().map_err(named)? {
            if Instant::now() > deadline {
                return Err(Error::Hang {
                    kernel: contender.name().to_owned(),
                    device: format!("cuda:{}", self.stream.context().device().ordinal),
                    seconds: TIMEOUT.as_secs(),
                });
            }
            thread::sleep(Duration::from_micros(20));
        }
        Ok(())
    }
}

/// Launches of one batch.
fn batch(seconds: f64) -> u32 {
    // A time of 0 gives infinity, which the cast turns into the largest number.
    ((BATCH_SECONDS / seconds).ceil() as u32).clamp(1, 10_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_long_enough_and_never_empty() {
        assert_eq!(batch(10.0), 1);
        assert_eq!(batch(1e-3), 50);
        assert_eq!(batch(0.0), 10_000);
        assert_eq!(batch(f64::NAN), 1);
    }
}
