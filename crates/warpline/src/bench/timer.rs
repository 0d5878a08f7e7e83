//! Timing of one launch, and of a sustained run.

use super::candidate::Timed;
use super::sensors::{SensorReading, Sensors};
use crate::device::Device;
use crate::error::Error;
use crate::gpu::flush::Flush;
use std::thread;
use std::time::{Duration, Instant};
use warpline_cuda::{CudaError, Event, Stream};

/// The time limit of one launch; a longer launch counts as hung.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The duration of a sustained measurement.
const SUSTAINED: Duration = Duration::from_millis(1500);
/// The number of flushes before a launch, each twice the size of the cache. The last one still runs
/// when the launch is enqueued, so that host time does not count.
const FLUSHES: u32 = 2;
/// The target duration of one batch of a sustained measurement.
const BATCH_SECONDS: f64 = 0.05;

/// The timing of one launch, or the mean of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) seconds: f64,
    pub(crate) reading: SensorReading,
}

/// A stream with timing events, an L2 flush and sensors.
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
            sensors: Sensors::for_gpu(context.device().pci.as_deref()),
            flush: Flush::new(device)?,
            start: Event::new(context)?,
            end: Event::new(context)?,
        })
    }

    /// Runs a candidate once without timing it.
    pub(crate) fn run_once(&self, candidate: &mut dyn Timed) -> Result<(), Error> {
        candidate.enqueue(&self.stream)?;
        self.end.record(&self.stream)?;
        self.wait(candidate)
    }

    /// Returns the number of bytes that the flushes read before each timed launch.
    pub(crate) fn flush_bytes(&self) -> u64 {
        u64::from(FLUSHES) * 2 * self.stream.context().device().l2_bytes
    }

    /// Times one launch with a cold L2 cache. Reads the sensors during the launch if `read_sensors` is
    /// set.
    pub(crate) fn time(
        &self,
        candidate: &mut dyn Timed,
        read_sensors: bool,
    ) -> Result<Sample, Error> {
        for _ in 0..FLUSHES {
            self.flush.run(&self.stream)?;
        }
        self.start.record(&self.stream)?;
        candidate.enqueue(&self.stream)?;
        self.end.record(&self.stream)?;
        let reading = match read_sensors {
            true => self.sensors.read(),
            false => SensorReading::default(),
        };
        self.wait(candidate)?;
        Ok(Sample {
            seconds: self.elapsed()?,
            reading,
        })
    }

    /// Runs a candidate alone for more than a second, without flushes. Each sample is the mean of a
    /// batch of launches.
    pub(crate) fn sustain(&self, candidate: &mut dyn Timed) -> Result<Vec<Sample>, Error> {
        let batch = batch_size(self.time(candidate, false)?.seconds);
        let mut samples = Vec::new();
        let start = Instant::now();
        while start.elapsed() < SUSTAINED {
            self.start.record(&self.stream)?;
            for _ in 0..batch {
                candidate.enqueue(&self.stream)?;
            }
            self.end.record(&self.stream)?;
            let reading = self.sensors.read();
            self.wait(candidate)?;
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

    /// Waits for the work of a candidate, up to [`TIMEOUT`].
    fn wait(&self, candidate: &dyn Timed) -> Result<(), Error> {
        let named = |e: CudaError| Error::Measurement {
            name: candidate.name().to_owned(),
            error: Box::new(e.into()),
        };
        let deadline = Instant::now() + TIMEOUT;
        while !self.end.is_done().map_err(named)? {
            if Instant::now() > deadline {
                return Err(Error::Hang {
                    kernel: candidate.name().to_owned(),
                    device: format!("cuda:{}", self.stream.context().device().ordinal),
                    seconds: TIMEOUT.as_secs(),
                });
            }
            thread::sleep(Duration::from_micros(20));
        }
        Ok(())
    }
}

/// Returns the number of launches in one batch.
fn batch_size(seconds: f64) -> u32 {
    // A time of 0 gives infinity, which the cast saturates.
    ((BATCH_SECONDS / seconds).ceil() as u32).clamp(1, 10_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_has_the_target_duration_and_is_never_empty() {
        assert_eq!(batch_size(10.0), 1);
        assert_eq!(batch_size(1e-3), 50);
        assert_eq!(batch_size(0.0), 10_000);
        assert_eq!(batch_size(f64::NAN), 1);
    }
}
