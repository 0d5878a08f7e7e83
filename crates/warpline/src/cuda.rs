//! Running a plan on a GPU: print, load, launch, time.

use crate::compare::Produced;
use crate::error::Error;
use crate::prepare::PreparedStep;
use crate::run::{Done, Job, Phase};
use std::thread;
use std::time::{Duration, Instant};
use warpline_cuda::{
    Args, Buffer, Context, CudaError, DataType, Event, Function, Im2col, JitOptions, LaunchConfig,
    Module, Stream, Swizzle, Tensor, TensorMap, Tiled, launch,
};
use warpline_ir::{Arg, DType, Launch, MapMode, ParamKind, TensorMapValue, Type};
use warpline_kernels::Bound;
use warpline_ptx::ptxas::Report;

/// Runs that are timed unless asked for otherwise.
const REPEATS: u32 = 10;

/// Fills outputs before the first run: a NaN in every floating-point type, all
/// ones in integers.
const POISON: u8 = 0xff;

/// Runs the plan once for its outputs, then as often as asked for to take the time.
pub(crate) fn run(job: &Job<'_>, context: &Context) -> Result<Done, Error> {
    let mut session = Session::new(job, context)?;
    let done = session.run(job);
    if matches!(done, Err(Error::Hang { .. })) {
        // Freeing anything would wait for the kernel, which does not end.
        std::mem::forget(session);
    }
    done
}

/// Everything a plan has on the device.
struct Session {
    stream: Stream,
    /// Read by kernels; kept until the session ends.
    _inputs: Vec<Buffer>,
    outputs: Vec<Buffer>,
    workspace: Buffer,
    /// Twice the level-2 cache: filling it before each timed run leaves
    /// nothing of the last one there.
    scratch: Buffer,
    steps: Vec<Loaded>,
    start: Event,
    end: Event,
}

/// A kernel on the device, and its launch.
struct Loaded {
    function: Function,
    config: LaunchConfig,
    args: Args,
}

impl Session {
    fn new(job: &Job<'_>, context: &Context) -> Result<Self, Error> {
        let stream = Stream::new(context)?;
        let inputs = (job.inputs.iter())
            .map(|t| Buffer::from_host(context, &t.data, &stream))
            .collect::<Result<Vec<_>, _>>()?;
        let outputs = (job.outputs.iter())
            .map(|s| Buffer::alloc(context, s.bytes()))
            .collect::<Result<Vec<_>, _>>()?;
        let workspace = Buffer::alloc(context, job.prepared.workspace as usize)?;
        let bound = Bound {
            inputs: inputs.iter().map(Buffer::address).collect(),
            outputs: outputs.iter().map(Buffer::address).collect(),
            workspace: workspace.address(),
        };
        let steps = (job.prepared.steps.iter())
            .map(|step| Loaded::new(step, &step.launch(&bound)?, context))
            .collect::<Result<_, _>>()?;
        let scratch = Buffer::alloc(context, 2 * context.device().l2_bytes as usize)?;
        Ok(Self {
            stream,
            _inputs: inputs,
            outputs,
            workspace,
            scratch,
            steps,
            start: Event::new(context)?,
            end: Event::new(context)?,
        })
    }

    fn run(&mut self, job: &Job<'_>) -> Result<Done, Error> {
        let repeats = job.options.repeat.map_or(REPEATS, |n| n.get());
        let total = u64::from(repeats) + 1;
        job.options.tell(Phase::Kernels { done: 0, total });
        for output in &mut self.outputs {
            output.fill(POISON, &self.stream)?;
        }
        self.workspace.fill(0, &self.stream)?;
        self.launch(job)?;
        let first = self.fetch()?;

        let mut seconds = Vec::new();
        for i in 0..repeats {
            job.options.tell(Phase::Kernels {
                done: u64::from(i) + 1,
                total,
            });
            // The fill also keeps the device busy while the launch is queued.
            self.scratch.fill(0, &self.stream)?;
            self.launch(job)?;
            seconds.push(f64::from(self.end.ms_since(&self.start)?) / 1e3);
        }
        Ok(Done {
            same_bits: self.fetch()? == first,
            outputs: first,
            seconds,
            stats: Vec::new(),
        })
    }

    /// Launches all steps between the two events, and waits for them.
    fn launch(&mut self, job: &Job<'_>) -> Result<(), Error> {
        self.start.record(&self.stream)?;
        for step in &mut self.steps {
            launch(&step.function, &step.config, &self.stream, &mut step.args)?;
        }
        self.end.record(&self.stream)?;
        self.wait(job.options.timeout)
    }

    /// Waits for the end, and gives up after a while.
    fn wait(&self, timeout: Duration) -> Result<(), Error> {
        let deadline = Instant::now() + timeout;
        while !self.end.is_done()? {
            if Instant::now() > deadline {
                return Err(Error::Hang {
                    kernel: self
                        .steps
                        .first()
                        .map_or("", |s| s.function.name())
                        .to_owned(),
                    device: format!("cuda:{}", self.stream.context().device().ordinal),
                    seconds: timeout.as_secs(),
                });
            }
            thread::sleep(Duration::from_micros(20));
        }
        Ok(())
    }

    fn fetch(&self) -> Result<Vec<Produced>, Error> {
        let read = |buffer: &Buffer| -> Result<Produced, Error> {
            let mut bytes = vec![0; buffer.len()];
            buffer.read(0, &mut bytes, &self.stream)?;
            // What was never written still is the poison, which no bound admits.
            Ok(Produced {
                bytes,
                never_written: Vec::new(),
            })
        };
        self.outputs.iter().map(read).collect()
    }
}

impl Loaded {
    fn new(step: &PreparedStep, launch: &Launch, context: &Context) -> Result<Self, Error> {
        let target = step
            .kernel
            .target()
            .copied()
            .unwrap_or(warpline_ir::Target::SM_90A);
        let ptx = warpline_ptx::print(&step.kernel, &target)?;
        let module = Module::from_ptx(context, &ptx.text, &JitOptions::default())?;
        let sizes: Vec<usize> = step.kernel.params.iter().map(|p| size(&p.kind)).collect();
        let mut function = module.function_with(&ptx.entry, &sizes)?;
        if ptx.shared_bytes > function.max_dynamic_shared() {
            function.set_max_dynamic_shared(ptx.shared_bytes)?;
        }
        let clustered = ptx.cluster.iter().product::<u32>() > 1;
        let config = LaunchConfig::new(launch.grid, [ptx.threads, 1, 1])
            .cluster(clustered.then_some(ptx.cluster))
            .shared_bytes(ptx.shared_bytes);
        // The driver's compiler makes the same remarks as ptxas.
        for advisory in Report::parse(module.log()).iter().flat_map(Report::errors) {
            tracing::warn!(
                kernel = function.name(),
                code = advisory.code,
                "the driver did not compile the kernel as it was written: {}",
                advisory.text
            );
        }
        tracing::debug!(
            kernel = function.name(),
            registers = function.attributes().registers,
            local_bytes = function.attributes().local_bytes,
            log = module.log(),
            "loaded a kernel"
        );
        Ok(Self {
            args: args(launch, context)?,
            function,
            config,
        })
    }
}

/// Bytes of a parameter, as it is declared in PTX.
fn size(kind: &ParamKind) -> usize {
    match kind {
        ParamKind::Scalar(ty) => ty.bytes().max(1),
        ParamKind::Pointer(_) => 8,
        ParamKind::TensorMap(_) => 128,
    }
}

/// The arguments as the driver takes them.
fn args(launch: &Launch, context: &Context) -> Result<Args, CudaError> {
    let mut args = Args::new();
    for arg in &launch.args {
        match arg {
            Arg::Pointer(address) => args.pointer(*address),
            Arg::Scalar(ty, bits) => scalar(&mut args, *ty, *bits),
            Arg::TensorMap(map) => args.tensor_map(&tensor_map(map, context)?),
        };
    }
    Ok(args)
}

/// Appends a number, as wide as its type is in PTX.
fn scalar(args: &mut Args, ty: Type, bits: u64) -> &mut Args {
    match ty.bytes() {
        0 | 1 => args.push(bits as u8),
        2 => args.push(bits as u16),
        8 => args.push(bits),
        _ => args.push(bits as u32),
    }
}

fn tensor_map(map: &TensorMapValue, context: &Context) -> Result<TensorMap, CudaError> {
    let decl = &map.decl;
    let dtype = data_type(decl.dtype);
    let mut tensor = Tensor::new(dtype, map.base, &map.extents, &map.strides);
    tensor.swizzle = swizzle(decl.swizzle);
    let (lower, upper, channels, pixels, element_strides) = match &decl.mode {
        MapMode::Tiled | MapMode::Stepped { .. } => {
            let sides: Vec<_> = (0..decl.rank()).map(|i| decl.box_side(i)).collect();
            let steps: Vec<_> = (0..decl.rank()).map(|i| decl.step(i)).collect();
            let mut tiled = Tiled::new(tensor, &sides);
            tiled.element_strides = &steps;
            return TensorMap::tiled(context, &tiled);
        }
        MapMode::Im2col {
            lower,
            upper,
            channels,
            pixels,
            steps,
        } => (lower, upper, *channels, *pixels, steps),
    };
    let im2col = Im2col {
        tensor,
        lower,
        upper,
        channels,
        pixels,
        element_strides,
    };
    TensorMap::im2col(context, &im2col)
}

fn swizzle(swizzle: warpline_ir::Swizzle) -> Swizzle {
    match swizzle {
        warpline_ir::Swizzle::None => Swizzle::None,
        warpline_ir::Swizzle::B32 => Swizzle::B32,
        warpline_ir::Swizzle::B64 => Swizzle::B64,
        warpline_ir::Swizzle::B128 => Swizzle::B128,
    }
}

fn data_type(dtype: DType) -> DataType {
    match dtype {
        DType::U8 | DType::E4m3 | DType::E5m2 => DataType::U8,
        DType::U16 => DataType::U16,
        DType::U32 => DataType::U32,
        DType::I32 => DataType::I32,
        DType::U64 => DataType::U64,
        DType::I64 => DataType::I64,
        DType::F32 => DataType::F32,
        DType::Tf32 => DataType::Tf32,
        DType::F16 => DataType::F16,
        DType::Bf16 => DataType::Bf16,
    }
}
