//! The guarantees of the runtime on a real device.

use crate::child::CaseResult;
use crate::gpu::{self, context};
use crate::trial::OpTrial;
use anyhow::{Result, bail, ensure};
use warpline::cuda::{DeviceBuffer, Stream};
use warpline::gpu::guarantees;
use warpline::{Device, LoadedPlan, RunOptions, prepare};
use warpline_ir::builder::*;
use warpline_ir::{BuildErrors, DType, Kernel, Target};
use warpline_kernels::vector_add::{Choice, FloatType, Problem, Schedule, VectorAdd};
use warpline_kernels::{
    AnyWorkload, BufferAddresses, Cost, FamilyError, HostTensor, LaunchStep, Plan, TensorSpec,
    Workload,
};

/// The name and the function of a test.
type RuntimeCase = (&'static str, fn(&Device) -> Result<CaseResult>);

/// The tests in addition to the runtime's own guarantees.
const CASES: [RuntimeCase; 4] = [
    ("two-threads", two_threads),
    ("out-of-memory", out_of_memory),
    ("dependent-launch", dependent_launch),
    ("trap", trap_ends_the_launch),
];

/// Returns the names of all tests.
pub fn names() -> impl Iterator<Item = &'static str> {
    let guarantees = guarantees::ALL.iter().map(|(name, _)| *name);
    guarantees.chain(CASES.iter().map(|(name, _)| *name))
}

/// Runs a test by its name.
pub fn run(name: &str, device: &Device) -> Result<CaseResult> {
    let guarantee = guarantees::ALL.iter().find(|(known, _)| *known == name);
    let case = CASES.iter().find(|(known, _)| *known == name);
    match (guarantee, case) {
        (Some((_, guarantee)), _) => Ok(passed_with_note(
            guarantee(device).map_err(anyhow::Error::msg)?,
        )),
        (_, Some((_, case))) => case(device),
        _ => bail!("unknown runtime test {name:?}"),
    }
}

/// Returns a passed result with a note.
fn passed_with_note(note: impl Into<String>) -> CaseResult {
    CaseResult {
        note: Some(note.into()),
        ..CaseResult::default()
    }
}

fn vector_add(n: u64, schedule: Schedule, target: &Target) -> Result<Workload<VectorAdd>> {
    let choice = Choice {
        schedule: Some(schedule),
        ..Choice::default()
    };
    let dtype = FloatType::F32;
    Ok(Workload::new(Problem { n, dtype }, &choice, target)?)
}

/// A plan loaded on a device, with its buffers.
struct LoadedWorkload {
    plan: LoadedPlan,
    stream: Stream,
    _inputs: Vec<DeviceBuffer>,
    outputs: Vec<DeviceBuffer>,
    _workspace: DeviceBuffer,
    addresses: BufferAddresses,
}

impl LoadedWorkload {
    fn new(workload: &dyn AnyWorkload, device: &Device) -> Result<Self> {
        let context = context(device)?;
        let prepared = prepare(workload, &device.target())?;
        let plan = prepared.load(device)?;
        let stream = Stream::new(context)?;
        let inputs = (workload.draw(1).iter())
            .map(|t| DeviceBuffer::from_host(context, &t.data, &stream))
            .collect::<Result<Vec<_>, _>>()?;
        let outputs = (workload.outputs().iter())
            .map(|spec| DeviceBuffer::alloc(context, spec.bytes()))
            .collect::<Result<Vec<_>, _>>()?;
        let mut workspace = DeviceBuffer::alloc(context, prepared.workspace as usize)?;
        workspace.fill(0, &stream)?;
        stream.synchronize()?;
        let addresses = |all: &[DeviceBuffer]| all.iter().map(DeviceBuffer::address).collect();
        let addresses = BufferAddresses {
            inputs: addresses(&inputs),
            outputs: addresses(&outputs),
            workspace: workspace.address(),
        };
        Ok(Self {
            plan,
            stream,
            _inputs: inputs,
            outputs,
            _workspace: workspace,
            addresses,
        })
    }

    /// Compares every output with the reference.
    fn check(&self, workload: &dyn AnyWorkload, inputs: &[HostTensor]) -> Result<()> {
        let outputs = workload.outputs().into_iter().zip(&self.outputs);
        for ((spec, buffer), reference) in outputs.zip(workload.reference(inputs)) {
            let mut data = vec![0; buffer.len()];
            buffer.read(0, &mut data, &self.stream)?;
            let got = HostTensor { spec, data };
            for (i, (x, (y, tolerance))) in got.values().zip(reference).enumerate() {
                ensure!(
                    (x - y).abs() <= tolerance,
                    "element {i} is {x}, expected {y} (tolerance {tolerance})"
                );
            }
        }
        Ok(())
    }
}

fn two_threads(device: &Device) -> Result<CaseResult> {
    let run_launches = |schedule| -> Result<()> {
        let workload = vector_add(50_021, schedule, &device.target())?;
        let mut loaded = LoadedWorkload::new(&workload, device)?;
        let inputs = workload.draw(1);
        for _ in 0..50 {
            for buffer in &mut loaded.outputs {
                buffer.fill(0xff, &loaded.stream)?;
            }
            loaded.plan.launch(&loaded.stream, &loaded.addresses)?;
            loaded.stream.synchronize()?;
            loaded.check(&workload, &inputs)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads = [Schedule::Specialized, Schedule::GridStride]
            .map(|schedule| scope.spawn(move || run_launches(schedule)));
        for thread in threads {
            match thread.join() {
                Ok(result) => result?,
                Err(_) => bail!("a thread panicked"),
            }
        }
        Ok(passed_with_note("50 launches each"))
    })
}

fn out_of_memory(device: &Device) -> Result<CaseResult> {
    let context = context(device)?;
    let (free, total) = context.memory()?;
    let error = match DeviceBuffer::alloc(context, total as usize) {
        Ok(_) => bail!("allocated {total} bytes although only {free} were free"),
        Err(error) => error,
    };
    let message = error.to_string();
    ensure!(
        message.contains(&total.to_string()),
        "the error does not state the size of {total} bytes: {message}"
    );
    let workload = vector_add(10_000, Schedule::Specialized, &device.target())?;
    let outcome = warpline::run(&workload, device, &RunOptions::default())?;
    ensure!(outcome.passed(), "the next run fails");
    Ok(passed_with_note(message))
}

/// Two kernels; the second may start before the first ends.
struct Chain;

/// The number of elements of the chain.
const CHAIN_LEN: u32 = 1 << 16;
/// The CTAs of each kernel of the chain.
const CTAS: u32 = 64;

impl Chain {
    fn kernel(
        name: &str,
        prelude: fn(),
        change: fn(Reg<u32>) -> Reg<u32>,
    ) -> Result<Kernel, BuildErrors> {
        Kernel::build(name, &Target::default(), |k| {
            let (x, y) = (k.pointer::<u32>("x"), k.pointer::<u32>("y"));
            k.role("all").warps(4).body(|| {
                prelude();
                let first = cta_id() * (CHAIN_LEN / CTAS) + thread_id();
                steps(CHAIN_LEN / CTAS / 128).each(|i| {
                    let index = first + i * 128;
                    y.store(index, change(x.load(index)));
                });
            });
        })
    }
}

impl AnyWorkload for Chain {
    fn family(&self) -> &'static str {
        "chain"
    }
    fn problem(&self) -> serde_json::Value {
        serde_json::json!({ "n": CHAIN_LEN })
    }
    fn config(&self) -> serde_json::Value {
        serde_json::json!({})
    }
    fn plan(&self, _: &Target) -> Result<Plan, FamilyError> {
        use warpline_kernels::Buffer;
        let (x, mid, y) = (Buffer::Input(0), Buffer::Workspace, Buffer::Output(0));
        // The first kernel lets the second start before the stores of the first; the second waits for them.
        let first = Self::kernel("chain_first", launch_dependents, |x| x + 1)?;
        let second = Self::kernel("chain_second", wait_prerequisites, |x| x * 3)?;
        let grid = [CTAS, 1, 1];
        let first = LaunchStep::new(first, grid)
            .pointer("x", x)
            .pointer("y", mid);
        let second = LaunchStep::new(second, grid)
            .pointer("x", mid)
            .pointer("y", y);
        Plan::new(vec![first, second.dependent()], u64::from(CHAIN_LEN) * 4)
    }
    fn cost(&self) -> Cost {
        Cost {
            flops: 0.0,
            bytes: f64::from(CHAIN_LEN) * 8.0,
        }
    }
    fn inputs(&self) -> Vec<TensorSpec> {
        vec![self.spec("x")]
    }
    fn draw(&self, seed: u64) -> Vec<HostTensor> {
        let values = (0..CHAIN_LEN).map(|i| f64::from(i ^ seed as u32));
        vec![HostTensor::round(self.spec("x"), values)]
    }
    fn outputs(&self) -> Vec<TensorSpec> {
        vec![self.spec("y")]
    }
    fn reference(&self, inputs: &[HostTensor]) -> Vec<Vec<(f64, f64)>> {
        let change = |x: f64| ((x + 1.0) * 3.0, 0.0);
        inputs
            .iter()
            .map(|t| t.values().map(change).collect())
            .collect()
    }
}

impl Chain {
    fn spec(&self, name: &'static str) -> TensorSpec {
        TensorSpec {
            name,
            dtype: DType::U32,
            shape: vec![CHAIN_LEN as usize],
        }
    }
}

fn dependent_launch(device: &Device) -> Result<CaseResult> {
    let mut options = RunOptions::default();
    options.repeat = std::num::NonZeroU32::new(50);
    let outcome = warpline::run(&Chain, device, &options)?;
    ensure!(
        outcome.passed() && outcome.same_bits,
        "{:?}",
        outcome.outputs
    );
    Ok(passed_with_note(format!(
        "51 runs, {:.1} µs",
        outcome.times.median_s * 1e6
    )))
}

/// A trap ends the launch with an error and makes the context unusable.
fn trap_ends_the_launch(device: &Device) -> Result<CaseResult> {
    let kernel = Kernel::build("trapped", &Target::default(), |k| {
        let x = k.pointer::<u32>("x");
        k.role("all")
            .warps(1)
            .body(|| if_(x.load(lane_id()).eq(7u32), trap));
    })?;
    let trial = OpTrial::new("trapped", &["trap"], kernel).input(&[7u32; 32]);
    match gpu::run(&trial, device) {
        Ok(_) => bail!("a kernel with a trap returned no error"),
        Err(error) => Ok(CaseResult {
            context_lost: true,
            ..passed_with_note(error.to_string())
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chain_passes_on_the_cpu_executor() {
        let outcome = warpline::run(&Chain, &Device::cpu(), &RunOptions::default()).unwrap();
        assert!(outcome.passed(), "{:?}", outcome.outputs);
    }
}
