//! Runs plans on the CPU executor.

use crate::compare::DeviceOutput;
use crate::error::Error;
use crate::run::{Job, RunPhase, RunResult};
use std::sync::Arc;
use std::time::Instant;
use warpline_cpu::{GlobalMemory, Options};
use warpline_kernels::{BufferAddresses, TensorSpec};

/// Runs the plan once per repeat, each time on new memory. Random timing uses a different seed for
/// each repeat.
pub(crate) fn run(job: &Job<'_>) -> Result<RunResult, Error> {
    let repeats = job.options.repeat.map_or(1, |n| n.get());
    let mut done = run_once(job, 0, repeats)?;
    for i in 1..repeats {
        let again = run_once(job, i, repeats)?;
        done.same_bits &= again.outputs == done.outputs;
        done.seconds.extend(again.seconds);
    }
    Ok(done)
}

fn run_once(job: &Job<'_>, index: u32, repeats: u32) -> Result<RunResult, Error> {
    let mut memory = GlobalMemory::new();
    let addresses = alloc_buffers(job, &mut memory);
    let start = Instant::now();
    let mut stats = Vec::new();
    let per_run: u64 = job.prepared.steps.iter().map(|s| s.ctas()).sum();
    let mut before = u64::from(index) * per_run;
    for step in &job.prepared.steps {
        let options = options(job, index, before, u64::from(repeats) * per_run);
        let launch = step.launch(&addresses)?;
        stats.push(warpline_cpu::run(&step.kernel, &launch, &memory, &options)?);
        before += step.ctas();
    }
    let seconds = vec![start.elapsed().as_secs_f64()];
    let outputs = job.outputs.iter().zip(&addresses.outputs);
    Ok(RunResult {
        outputs: outputs
            .map(|(spec, &address)| read_output(&memory, spec, address))
            .collect(),
        same_bits: true,
        seconds,
        stats,
        build: job.prepared.times,
        origins: Vec::new(),
    })
}

/// Allocates every buffer of the plan in CPU executor memory.
fn alloc_buffers(job: &Job<'_>, memory: &mut GlobalMemory) -> BufferAddresses {
    BufferAddresses {
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
    let progress = job.options.progress.clone().map(|progress| {
        let report = move |done: u64, _: u64| {
            progress(RunPhase::Kernels {
                done: before + done,
                total,
            })
        };
        Arc::new(report) as warpline_cpu::ProgressCallback
    });
    Options {
        timing: job.options.timing,
        seed: job.options.seed.wrapping_add(u64::from(index)),
        threads: job.options.threads,
        progress,
        ..Options::default()
    }
}

/// Reads an output and finds the elements that were never written.
fn read_output(memory: &GlobalMemory, spec: &TensorSpec, address: u64) -> DeviceOutput {
    if let Ok(bytes) = memory.read(address, spec.bytes()) {
        return DeviceOutput {
            bytes,
            never_written: Vec::new(),
        };
    }
    // Element by element, because at least one is unwritten.
    let size = spec.dtype.bytes();
    let missing = |i: &usize| memory.read(address + (i * size) as u64, size).is_err();
    DeviceOutput {
        // Cannot fail: the buffer has this size.
        bytes: memory.read_lossy(address, spec.bytes()).unwrap_or_default(),
        never_written: (0..spec.elements()).filter(missing).collect(),
    }
}
