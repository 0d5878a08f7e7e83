//! Running a plan on the simulator.

use crate::compare::Produced;
use crate::error::Error;
use crate::run::{Done, Job, Phase};
use std::sync::Arc;
use std::time::Instant;
use warpline_cpu::{Memory, Options};
use warpline_kernels::{Bound, TensorSpec};

/// Runs the plan as often as asked for, each time on fresh memory; random
/// timing takes another seed each time.
pub(crate) fn run(job: &Job<'_>) -> Result<Done, Error> {
    let repeats = job.options.repeat.map_or(1, |n| n.get());
    let mut done = once(job, 0, repeats)?;
    for i in 1..repeats {
        let again = once(job, i, repeats)?;
        done.same_bits &= again.outputs == done.outputs;
        done.seconds.extend(again.seconds);
    }
    Ok(done)
}

fn once(job: &Job<'_>, index: u32, repeats: u32) -> Result<Done, Error> {
    let mut memory = Memory::new();
    let bound = bind(job, &mut memory);
    let start = Instant::now();
    let mut stats = Vec::new();
    let per_run: u64 = job.prepared.steps.iter().map(|s| s.ctas()).sum();
    let mut before = u64::from(index) * per_run;
    for step in &job.prepared.steps {
        let options = options(job, index, before, u64::from(repeats) * per_run);
        let launch = step.launch(&bound)?;
        stats.push(warpline_cpu::run(&step.kernel, &launch, &memory, &options)?);
        before += step.ctas();
    }
    let seconds = vec![start.elapsed().as_secs_f64()];
    let outputs = job.outputs.iter().zip(&bound.outputs);
    Ok(Done {
        outputs: outputs
            .map(|(spec, &at)| fetch(&memory, spec, at))
            .collect(),
        same_bits: true,
        seconds,
        stats,
        build: job.prepared.times,
        origins: Vec::new(),
    })
}

/// Gives every buffer of the plan its place in the simulator's memory.
fn bind(job: &Job<'_>, memory: &mut Memory) -> Bound {
    Bound {
        inputs: job
            .inputs
            .iter()
            .map(|t| memory.alloc_from(&t.data, t.spec.name))
            .collect(),
        outputs: job
            .outputs
            .iter()
            .map(|s| memory.alloc(s.bytes(), s.name))
            .collect(),
        workspace: memory.alloc_from(&vec![0; job.prepared.workspace as usize], "workspace"),
    }
}

fn options(job: &Job<'_>, index: u32, before: u64, total: u64) -> Options {
    let progress = job.options.progress.clone().map(|tell| {
        let told = move |done: u64, _: u64| {
            tell(Phase::Kernels {
                done: before + done,
                total,
            })
        };
        Arc::new(told) as warpline_cpu::Progress
    });
    Options {
        timing: job.options.timing,
        seed: job.options.seed.wrapping_add(u64::from(index)),
        threads: job.options.threads,
        progress,
        ..Options::default()
    }
}

/// The bytes of an output, and which elements nothing wrote.
fn fetch(memory: &Memory, spec: &TensorSpec, at: u64) -> Produced {
    if let Ok(bytes) = memory.read(at, spec.bytes()) {
        return Produced {
            bytes,
            never_written: Vec::new(),
        };
    }
    // One by one, only where something is missing.
    let size = spec.dtype.bytes();
    let missing = |i: &usize| memory.read(at + (i * size) as u64, size).is_err();
    Produced {
        // The buffer is this long, so there is no fault.
        bytes: memory.read_lossy(at, spec.bytes()).unwrap_or_default(),
        never_written: (0..spec.elements()).filter(missing).collect(),
    }
}
