//! Guarantees of the runtime, tested on a device.
//!
//! Each guarantee is a function that returns a sentence with the measurement, or an error that says
//! how it was violated. [`ALL`] lists them for the tests on a GPU.

use super::buffers::Buffers;
use super::code::CodeOrigin;
use super::loaded_plan::LoadedPlan;
use crate::compare::compare;
use crate::device::Device;
use crate::error::Error;
use crate::prepare::{Prepared, prepare};
use std::time::{Duration, Instant, SystemTime};
use warpline_cuda::Stream;
use warpline_ir::Kernel;
use warpline_kernels::vector_add::{Choice, FloatType, Problem, Schedule, VectorAdd};
use warpline_kernels::{AnyWorkload, Workload};

/// The test of a guarantee on a device.
pub type Guarantee = fn(&Device) -> Result<String, String>;

/// All guarantees, by name.
pub const ALL: [(&str, Guarantee); 4] = [
    ("capture-and-replay", capture_and_replay),
    ("one-jit-per-class", one_jit_per_class),
    ("launch-cost", launch_cost),
    ("first-launch", first_launch),
];

/// The maximum host time of a launch of a bound plan.
const MAX_LAUNCH: Duration = Duration::from_micros(10);
/// The maximum time from a problem of a new class to its first launch.
const MAX_FIRST_LAUNCH: Duration = Duration::from_millis(300);

/// A captured and replayed launch produces the same results as a direct launch.
pub fn capture_and_replay(device: &Device) -> Result<String, String> {
    let work = vector_add(1_000_003, device)?;
    let fixture = Fixture::new(&work, device)?;
    fixture.replay(&work).map_err(text)?
}

/// A hundred problems of one class need at most one compilation.
pub fn one_jit_per_class(device: &Device) -> Result<String, String> {
    let mut jits = 0;
    for i in 0..100 {
        let work = vector_add(1 + i * 1009, device)?;
        let loaded = load(&work, device).map_err(text)?;
        jits += loaded.jits();
        if i > 0 && loaded.origins().any(|origin| origin != CodeOrigin::Process) {
            return Err(format!(
                "extent {i} of the class did not reuse the first kernel"
            ));
        }
    }
    match jits {
        0 | 1 => Ok(format!("100 extents of one class, {jits} compilations")),
        more => Err(format!("100 extents of one class took {more} compilations")),
    }
}

/// A launch of a bound plan takes little host time.
pub fn launch_cost(device: &Device) -> Result<String, String> {
    let work = vector_add(1024, device)?;
    let fixture = Fixture::new(&work, device)?;
    let min = fixture.launch_cost().map_err(text)?;
    let result = format!("a launch costs the host {:.2} µs", us(min));
    if min < MAX_LAUNCH {
        Ok(result)
    } else {
        Err(format!("{result}, but must be below {} µs", us(MAX_LAUNCH)))
    }
}

/// A class that was never compiled is launched soon after the request.
pub fn first_launch(device: &Device) -> Result<String, String> {
    let work = vector_add(1024, device)?;
    let fixture = Fixture::new(&work, device)?;
    let (elapsed, loaded) = fixture.first_launch(&work, device).map_err(text)?;
    let times = loaded.times();
    let result = format!(
        "first launch of a new class after {:.1} ms (build {:.1}, check {:.1}, print {:.1}, JIT {:.1})",
        ms(elapsed),
        ms(times.build),
        ms(times.check),
        ms(times.print),
        ms(times.jit)
    );
    match loaded.jits() {
        0 => Err("the class was not new".into()),
        _ if elapsed > MAX_FIRST_LAUNCH => {
            Err(format!("{result}, above {} ms", ms(MAX_FIRST_LAUNCH)))
        }
        _ => Ok(result),
    }
}

/// Returns a problem of one class: everything that is compiled in is fixed.
fn vector_add(n: u64, device: &Device) -> Result<Workload<VectorAdd>, String> {
    let choice = Choice {
        schedule: Some(Schedule::Specialized),
        stages: Some(3),
        tile: Some(16384),
        warps: Some(8),
        ..Choice::default()
    };
    let problem = Problem {
        n,
        dtype: FloatType::F32,
    };
    Workload::new(problem, &choice, &device.target()).map_err(|e| e.to_string())
}

fn load(work: &dyn AnyWorkload, device: &Device) -> Result<LoadedPlan, Error> {
    prepare(work, &device.target())?.load(device)
}

/// A loaded plan with its buffers on a device.
struct Fixture {
    loaded: LoadedPlan,
    buffers: Buffers,
    stream: Stream,
}

impl Fixture {
    fn new(work: &dyn AnyWorkload, device: &Device) -> Result<Self, String> {
        let open = || -> Result<Self, Error> {
            let loaded = load(work, device)?;
            let stream = Stream::new(loaded.context())?;
            let (inputs, outputs) = (work.draw(0), work.outputs());
            let buffers = Buffers::new(loaded.context(), &inputs, &outputs, 0, &stream)?;
            Ok(Self {
                loaded,
                buffers,
                stream,
            })
        };
        open().map_err(text)
    }

    /// Compares a replayed launch with a direct one. The outer error is a failure of the runtime, the
    /// inner error a violated guarantee.
    fn replay(mut self, work: &dyn AnyWorkload) -> Result<Result<String, String>, Error> {
        let plan = self.loaded.bind(&self.buffers.addresses())?;
        self.buffers.reset(&self.stream)?;
        plan.launch(&self.stream)?;
        let direct = self.buffers.read_outputs(&self.stream)?;

        let graph = self.stream.capture(|s| plan.launch(s))?;
        let graph = graph.instantiate()?;
        self.buffers.reset(&self.stream)?;
        graph.launch(&self.stream)?;
        let replayed = self.buffers.read_outputs(&self.stream)?;

        if replayed != direct {
            return Ok(Err(
                "the replay produced other bits than the direct launch".into()
            ));
        }
        let reference = work.reference(&work.draw(0));
        for ((spec, produced), reference) in work.outputs().iter().zip(&replayed).zip(&reference) {
            let found = compare(spec, produced, reference);
            if !found.passed() {
                let why = format!("{} elements of the replay are wrong", found.failed);
                return Ok(Err(why));
            }
        }
        Ok(Ok(
            "a replayed launch produces the same results as a direct launch".into(),
        ))
    }

    /// Returns the minimum of several rounds. A round is too short to fill the stream's queue.
    fn launch_cost(&self) -> Result<Duration, Error> {
        const ROUND: u32 = 200;
        let plan = self.loaded.bind(&self.buffers.addresses())?;
        let mut min = Duration::MAX;
        for _ in 0..10 {
            let start = Instant::now();
            for _ in 0..ROUND {
                plan.launch(&self.stream)?;
            }
            min = min.min(start.elapsed() / ROUND);
            self.stream.synchronize()?;
        }
        Ok(min)
    }

    /// Launches the kernels under new names, which makes a new class.
    fn first_launch(
        &self,
        work: &dyn AnyWorkload,
        device: &Device,
    ) -> Result<(Duration, LoadedPlan), Error> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let start = Instant::now();
        let mut plan = work.plan(&device.target())?;
        let build = start.elapsed();
        for step in &mut plan.steps {
            let mut kernel = Kernel::clone(&step.kernel);
            kernel.name += &format!("_{}", now.as_ref().map_or(0, |d| d.as_nanos()));
            step.kernel = kernel.into();
        }
        let mut prepared = Prepared::new(plan, &device.target())?;
        prepared.times.build = build;
        let loaded = prepared.load(device)?;
        loaded.launch(&self.stream, &self.buffers.addresses())?;
        let elapsed = start.elapsed();
        self.stream.synchronize()?;
        Ok((elapsed, loaded))
    }
}

fn text(e: Error) -> String {
    e.to_string()
}

fn us(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
