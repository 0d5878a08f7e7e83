//! What the runtime promises, held against a device.
//!
//! Each promise is a function that gives a sentence with what was measured, or
//! says how it was broken. [`ALL`] lists them for the tests on a GPU.

use super::buffers::Buffers;
use super::code::Origin;
use super::ready::Ready;
use crate::compare::compare;
use crate::device::Device;
use crate::error::Error;
use crate::prepare::{Prepared, prepare};
use std::time::{Duration, Instant, SystemTime};
use warpline_cuda::Stream;
use warpline_ir::Kernel;
use warpline_kernels::vector_add::{Choice, Float, Form, Problem, VectorAdd};
use warpline_kernels::{AnyWork, Work};

/// How a promise is held against a device.
pub type Promise = fn(&Device) -> Result<String, String>;

/// All promises, by name.
pub const ALL: [(&str, Promise); 4] = [
    ("capture-and-replay", capture_and_replay),
    ("one-jit-per-class", one_jit_per_class),
    ("launch-cost", launch_cost),
    ("first-launch", first_launch),
];

/// The most host time of a launch whose kernels are loaded and bound.
const LAUNCH: Duration = Duration::from_micros(10);
/// The most time from a problem of a new class to its first launch.
const FIRST_LAUNCH: Duration = Duration::from_millis(300);

/// A launch captured in a graph and replayed gives the numbers of a plain one.
pub fn capture_and_replay(device: &Device) -> Result<String, String> {
    let work = vector_add(1_000_003, device)?;
    let bench = Bench::new(&work, device)?;
    bench.replay(&work).map_err(text)?
}

/// A hundred extents of one class cost at most one compilation.
pub fn one_jit_per_class(device: &Device) -> Result<String, String> {
    let mut jits = 0;
    for i in 0..100 {
        let work = vector_add(1 + i * 1009, device)?;
        let ready = loaded(&work, device).map_err(text)?;
        jits += ready.jits();
        if i > 0 && ready.origins().any(|origin| origin != Origin::Process) {
            return Err(format!(
                "extent {i} of the class was not served by the first"
            ));
        }
    }
    match jits {
        0 | 1 => Ok(format!("100 extents of one class, {jits} compilations")),
        more => Err(format!("100 extents of one class took {more} compilations")),
    }
}

/// A launch of what is loaded and bound costs the host next to nothing.
pub fn launch_cost(device: &Device) -> Result<String, String> {
    let work = vector_add(1024, device)?;
    let bench = Bench::new(&work, device)?;
    let least = bench.launch_cost().map_err(text)?;
    let said = format!("a launch costs the host {:.2} µs", us(least));
    if least < LAUNCH {
        Ok(said)
    } else {
        Err(format!("{said}, and should be below {} µs", us(LAUNCH)))
    }
}

/// A class that nobody compiled before is launched soon after it is asked for.
pub fn first_launch(device: &Device) -> Result<String, String> {
    let work = vector_add(1024, device)?;
    let bench = Bench::new(&work, device)?;
    let (took, ready) = bench.first_launch(&work, device).map_err(text)?;
    let times = ready.times();
    let said = format!(
        "the first launch of a new class after {:.1} ms (build {:.1}, check {:.1}, print {:.1}, JIT {:.1})",
        ms(took),
        ms(times.build),
        ms(times.check),
        ms(times.print),
        ms(times.jit)
    );
    match ready.jits() {
        0 => Err("the class was not new".into()),
        _ if took > FIRST_LAUNCH => Err(format!("{said}, above {} ms", ms(FIRST_LAUNCH))),
        _ => Ok(said),
    }
}

/// One class for all extents: everything that is compiled in is fixed.
fn vector_add(n: u64, device: &Device) -> Result<Work<VectorAdd>, String> {
    let choice = Choice {
        form: Some(Form::Specialized),
        stages: Some(3),
        tile: Some(16384),
        warps: Some(8),
        ..Choice::default()
    };
    let problem = Problem {
        n,
        dtype: Float::F32,
    };
    Work::new(problem, &choice, &device.target()).map_err(|e| e.to_string())
}

fn loaded(work: &dyn AnyWork, device: &Device) -> Result<Ready, Error> {
    prepare(work, &device.target())?.load(device)
}

/// Work with its buffers on a device.
struct Bench {
    ready: Ready,
    buffers: Buffers,
    stream: Stream,
}

impl Bench {
    fn new(work: &dyn AnyWork, device: &Device) -> Result<Self, String> {
        let open = || -> Result<Self, Error> {
            let ready = loaded(work, device)?;
            let stream = Stream::new(ready.context())?;
            let (inputs, outputs) = (work.draw(0), work.outputs());
            let buffers = Buffers::new(ready.context(), &inputs, &outputs, 0, &stream)?;
            Ok(Self {
                ready,
                buffers,
                stream,
            })
        };
        open().map_err(text)
    }

    /// The outer error is of the way there, the inner one of what came out.
    fn replay(mut self, work: &dyn AnyWork) -> Result<Result<String, String>, Error> {
        let launches = self.ready.bind(&self.buffers.bound())?;
        self.buffers.reset(&self.stream)?;
        launches.launch(&self.stream)?;
        let plain = self.buffers.fetch(&self.stream)?;

        let graph = self.stream.capture(|s| launches.launch(s))?;
        let graph = graph.instantiate()?;
        self.buffers.reset(&self.stream)?;
        graph.launch(&self.stream)?;
        let replayed = self.buffers.fetch(&self.stream)?;

        if replayed != plain {
            return Ok(Err("a replay gave other bits than the launch".into()));
        }
        let reference = work.reference(&work.draw(0));
        for ((spec, produced), reference) in work.outputs().iter().zip(&replayed).zip(&reference) {
            let found = compare(spec, produced, reference);
            if !found.passed() {
                let why = format!("{} elements of a replay are wrong", found.failed);
                return Ok(Err(why));
            }
        }
        Ok(Ok(
            "a captured launch, replayed, gives the numbers of a plain one".into(),
        ))
    }

    /// The least of several rounds, each too short to fill the stream.
    fn launch_cost(&self) -> Result<Duration, Error> {
        const ROUND: u32 = 200;
        let launches = self.ready.bind(&self.buffers.bound())?;
        let mut least = Duration::MAX;
        for _ in 0..10 {
            let start = Instant::now();
            for _ in 0..ROUND {
                launches.launch(&self.stream)?;
            }
            least = least.min(start.elapsed() / ROUND);
            self.stream.synchronize()?;
        }
        Ok(least)
    }

    /// A kernel of a name that was never used is of a class of its own.
    fn first_launch(
        &self,
        work: &dyn AnyWork,
        device: &Device,
    ) -> Result<(Duration, Ready), Error> {
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
        let ready = prepared.load(device)?;
        ready.launch(&self.stream, &self.buffers.bound())?;
        let took = start.elapsed();
        self.stream.synchronize()?;
        Ok((took, ready))
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
