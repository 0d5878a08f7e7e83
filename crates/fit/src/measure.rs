//! Timings on a GPU: every problem with many configs, in random order and with a cold L2 cache.

use crate::table::{ConfigIndex, Row, Table, set_fields};
use anyhow::{Context as _, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};
use warpline::bench::statistics::Quartiles;
use warpline::cuda::{Context, DeviceBuffer, Event, Stream};
use warpline::{BoundPlan, Device, Flush, LoadedPlan, prepare_selected};
use warpline_family::field::Fields as _;
use warpline_ir::{DType, Target};
use warpline_kernels::gemm::fitting;
use warpline_kernels::gemm::{Choice, Config, Gemm, Problem};
use warpline_kernels::numbers::Random;
use warpline_kernels::{AnyWorkload, BufferAddresses, HostTensor, TensorSpec, Workload};

/// The limits of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Configs of a problem: those with the best estimates, and random ones.
    pub configs: [usize; 2],
    /// Timed launches of a config.
    pub rounds: usize,
    /// No further problem is measured after this time.
    pub time: Duration,
}

/// Problems whose kernels are compiled at a time, by all cores.
const CHUNK: usize = 24;
/// Rounds after which configs slower than [`SLOW`] times the best are dropped.
const FIRST_ROUNDS: usize = 3;
const SLOW: f64 = 1.6;
/// Random configs have at most this many times the best estimate.
const MAX_ESTIMATE: f64 = 3.0;
/// A launch that takes longer counts as hung.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Flushes before a launch. The last one still runs when the launch is enqueued.
const FLUSHES: usize = 2;

/// Measures problems until the time limit. While the configs of one chunk run, those of the next are
/// compiled. `report` gets the table after each chunk.
pub fn measure(
    problems: &[Problem],
    seed: u64,
    device: &Device,
    limits: &Limits,
    report: &dyn Fn(&Table) -> Result<()>,
) -> Result<Table> {
    let start = Instant::now();
    let context = device.context().context("a GPU is needed")?;
    let mut gpu = Gpu::new(context, device)?;
    let (mut random, mut index) = (Random::new(seed), ConfigIndex::default());
    let mut table = Table {
        device: context.device().name.clone(),
        seed,
        ..Table::default()
    };
    let style = ProgressStyle::with_template("{pos}/{len} problems {elapsed} {msg}")?;
    let progress = ProgressBar::new(problems.len() as u64).with_style(style);
    let (sender, receiver) = sync_channel(1);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for (i, chunk) in problems.chunks(CHUNK).enumerate() {
                let loaded: Vec<_> = (chunk.par_iter().enumerate())
                    .map(|(j, problem)| {
                        let seed = seed + (i * CHUNK + j) as u64;
                        (problem, load(problem, seed, device, limits))
                    })
                    .collect();
                // The receiver is gone after the time limit.
                if start.elapsed() > limits.time || sender.send(loaded).is_err() {
                    break;
                }
            }
        });
        for chunk in receiver {
            for (problem, configs) in &chunk {
                progress.inc(1);
                let times = gpu.time(problem, configs, limits.rounds, &mut random)?;
                let times = configs.iter().zip(times).filter_map(|(config, time)| {
                    let config = set_fields(Choice::from(&config.config).json());
                    Some((index.index(config, &mut table.configs), time?))
                });
                table.rows.push(Row {
                    problem: set_fields(problem.json()),
                    times: times.collect(),
                });
            }
            report(&table)?;
        }
        progress.finish();
        Ok(table)
    })
}

/// A config with loaded kernels.
struct LoadedConfig {
    config: Config,
    plan: LoadedPlan,
    workspace: u64,
}

/// Loads the configs of a problem; configs that do not compile or are not proved are left out.
fn load(problem: &Problem, seed: u64, device: &Device, limits: &Limits) -> Vec<LoadedConfig> {
    let target = device.target();
    let configs = sample(problem, seed, &target, limits.configs);
    let load = |config: &Config| -> Result<LoadedConfig> {
        let work = workload(problem, config);
        let prepared = prepare_selected(&work, &target)?;
        Ok(LoadedConfig {
            config: *config,
            plan: prepared.load(device)?,
            workspace: prepared.workspace,
        })
    };
    let loaded = configs.par_iter().map(|config| {
        load(config).inspect_err(|e| eprintln!("{}: {e:#}", Choice::from(config).json()))
    });
    loaded.filter_map(Result::ok).collect()
}

/// Returns a workload with this config.
fn workload(problem: &Problem, config: &Config) -> Workload<Gemm> {
    Workload {
        problem: problem.clone(),
        choice: Choice::default(),
        config: *config,
    }
}

/// Selects configs: those with the best estimates, and random ones.
fn sample(
    problem: &Problem,
    seed: u64,
    target: &Target,
    [best, others]: [usize; 2],
) -> Vec<Config> {
    let mut all = fitting::ranked(problem, target);
    let max = all.first().map_or(0.0, |(best, _)| best * MAX_ESTIMATE);
    let mut rest: Vec<_> = all.split_off(best.min(all.len()));
    rest.retain(|(estimate, _)| *estimate <= max);
    let mut random = Random::new(seed);
    for _ in 0..others.min(rest.len()) {
        all.push(rest.swap_remove(random.below(rest.len() as u64) as usize));
    }
    all.into_iter().map(|(_, config)| config).collect()
}

/// A GPU with buffers that all problems share.
struct Gpu {
    stream: Stream,
    flush: Flush,
    start: Event,
    end: Event,
    /// By name and element type.
    inputs: BTreeMap<String, DeviceBuffer>,
    output: DeviceBuffer,
    workspace: DeviceBuffer,
}

/// The elements that an input buffer repeats.
const DRAWN_ELEMENTS: usize = 4 << 20;

impl Gpu {
    fn new(context: &Context, device: &Device) -> Result<Self> {
        Ok(Self {
            stream: Stream::new(context)?,
            flush: Flush::new(device)?,
            start: Event::new(context)?,
            end: Event::new(context)?,
            inputs: BTreeMap::new(),
            output: DeviceBuffer::alloc(context, 0)?,
            workspace: DeviceBuffer::alloc(context, 0)?,
        })
    }

    /// Returns the address of normal numbers: `bytes` bytes of elements.
    fn input(&mut self, spec: &TensorSpec) -> Result<u64> {
        let name = format!("{} {}", spec.name, spec.dtype);
        let bytes = spec.bytes();
        match self.inputs.get(&name) {
            Some(buffer) if buffer.len() >= bytes => Ok(buffer.address()),
            _ => {
                self.inputs.remove(&name);
                let buffer = random_buffer(spec.dtype, bytes, &self.stream)?;
                let address = buffer.address();
                self.inputs.insert(name, buffer);
                Ok(address)
            }
        }
    }

    /// Times the configs of a problem in µs. Configs far behind the best have the median of the first rounds.
    fn time(
        &mut self,
        problem: &Problem,
        configs: &[LoadedConfig],
        rounds: usize,
        random: &mut Random,
    ) -> Result<Vec<Option<f64>>> {
        let Some(first) = configs.first() else {
            return Ok(Vec::new());
        };
        let work = workload(problem, &first.config);
        let workspace = configs.iter().map(|c| c.workspace).max().unwrap_or(0) as usize;
        let output = work.outputs().iter().map(TensorSpec::bytes).sum::<usize>();
        let context = self.stream.context().clone();
        if self.workspace.len() < workspace {
            self.workspace = DeviceBuffer::alloc(&context, workspace)?;
            self.workspace.fill(0, &self.stream)?;
        }
        if self.output.len() < output {
            self.output = DeviceBuffer::alloc(&context, output)?;
        }
        let inputs = work.inputs();
        let addresses = BufferAddresses {
            inputs: inputs
                .iter()
                .map(|spec| self.input(spec))
                .collect::<Result<_>>()?,
            outputs: work
                .outputs()
                .iter()
                .map(|_| self.output.address())
                .collect(),
            workspace: self.workspace.address(),
        };
        let bound: Vec<BoundPlan> = (configs.iter())
            .map(|config| config.plan.bind(&addresses))
            .collect::<Result<_, _>>()?;
        let mut times = vec![Vec::new(); configs.len()];
        let mut remaining: Vec<usize> = (0..configs.len()).collect();
        // The first round warms up.
        for round in 0..=rounds {
            let mut order = remaining.clone();
            while !order.is_empty() {
                let i = order.swap_remove(random.below(order.len() as u64) as usize);
                let seconds = self.launch(&bound[i])?;
                if round > 0 {
                    times[i].push(seconds);
                }
            }
            if round == FIRST_ROUNDS {
                let best =
                    (remaining.iter().map(|&i| median(&times[i]))).fold(f64::INFINITY, f64::min);
                remaining.retain(|&i| median(&times[i]) <= SLOW * best);
            }
        }
        Ok((times.iter())
            .map(|times| (!times.is_empty()).then(|| round_to(median(times) * 1e6)))
            .collect())
    }

    /// Times one launch with a cold L2 cache.
    fn launch(&self, plan: &BoundPlan) -> Result<f64> {
        for _ in 0..FLUSHES {
            self.flush.run(&self.stream)?;
        }
        self.start.record(&self.stream)?;
        plan.launch(&self.stream)?;
        self.end.record(&self.stream)?;
        let deadline = Instant::now() + TIMEOUT;
        while !self.end.is_done()? {
            if Instant::now() > deadline {
                bail!("a kernel hangs: {:?}", plan.names().collect::<Vec<_>>());
            }
            std::thread::sleep(Duration::from_micros(10));
        }
        Ok(f64::from(self.end.ms_since(&self.start)?) / 1e3)
    }
}

/// Returns a buffer of normal numbers, which repeat.
fn random_buffer(dtype: DType, bytes: usize, stream: &Stream) -> Result<DeviceBuffer> {
    let drawn = DRAWN_ELEMENTS * dtype.bytes();
    let spec = TensorSpec {
        name: "drawn",
        dtype,
        shape: vec![DRAWN_ELEMENTS.min(bytes.div_ceil(dtype.bytes()))],
    };
    let tensor = HostTensor::draw_normal(vec![spec], 1).remove(0);
    let mut buffer = DeviceBuffer::alloc(stream.context(), bytes)?;
    for offset in (0..bytes).step_by(drawn) {
        let part = &tensor.data[..tensor.data.len().min(bytes - offset)];
        buffer.write(offset, part, stream)?;
    }
    Ok(buffer)
}

/// Returns the median; infinite for no times.
fn median(times: &[f64]) -> f64 {
    Quartiles::new(times.iter().copied()).map_or(f64::INFINITY, |q| q.median)
}

/// Rounds to hundredths.
fn round_to(us: f64) -> f64 {
    (us * 100.0).round() / 100.0
}
