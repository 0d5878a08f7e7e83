//! `C = epilogue(A · Bᵀ)`: GEMM, bare ([`Gemm`]) and as a linear layer ([`Linear`]).
//!
//! A kernel is a schedule × a mainloop × an epilogue × a tile scheduler. To understand the default
//! bf16 GEMM, read these files in order, about 300 lines: `schedule/cooperative.rs`,
//! `schedule/producer.rs`, `mainloop/k_major.rs`, `mainloop/accumulate.rs`, `epilogue/store.rs`.
//!
//! | where | what |
//! |---|---|
//! | [`problem`] | extents, types, layouts, strides |
//! | `access` | TMA or a gather: how a kernel reads an operand |
//! | [`config`] | schedules with their options, tile shapes, derived sizes |
//! | `flags` | conversion between flags and schedules |
//! | `complete` | the config of a problem: flags, and defaults that fit the target |
//! | `pack` | copies of operands that TMA cannot address |
//! | `words` | elements of any size as unsigned numbers, packed into words |
//! | `sizes` | shared memory, stages and staging tiles, computed by the builder |
//! | `schedule` | the roles of a kernel |
//! | `mainloop` | the ring slot of A and B, its loads and its wgmmas |
//! | `epilogue` | scale, bias, activation, gate, residual, reductions, store |
//! | `tile_scheduler` | the assignment of tiles to CTAs |
//! | `context` | the parameters and components of one kernel |
//! | `heuristic` | the candidate configs and their estimated times |
//! | `fitting` | access to the heuristic for the program that fits it |
//! | `batch_invariant` | the fields on which the bits of a row may depend |
//! | `tail` | a narrower tile for the partial last wave |
//! | `draw_problem` | random problems |
//! | `call` | the ops: from call arguments to a problem |
//! | `operand_view` | tensors of a call as operands |
//! | `reference` | the float64 reference |
//! | `table`, `layout_table` | the test tables |

mod access;
mod batch_invariant;
pub(crate) mod call;
mod complete;
pub mod config;
mod context;
pub(crate) mod draw_problem;
pub(crate) mod epilogue;
#[doc(hidden)]
pub mod fitting;
mod flags;
mod heuristic;
pub(crate) mod layers;
mod layout_table;
mod mainloop;
mod offset;
pub(crate) mod operand_view;
mod pack;
pub mod problem;
pub(crate) mod reference;
pub(crate) mod schedule;
mod sizes;
pub(crate) mod table;
mod tail;
pub(crate) mod tile_scheduler;
mod words;

pub use crate::roles::RegisterBudget;
pub use config::{
    Choice, Config, Exchange, Operands, Raster, Schedule, ScheduleKind, Staging, TileAssignment,
};
pub use pack::Pack;
pub use problem::{ALayout, Accumulation, Activation, OperandLayout, OperandType, Problem};
pub use tile_scheduler::Cluster;

use pack::PackedOperands;
use problem::{Class, Matrix};
use std::borrow::Cow;
use std::marker::PhantomData;
use std::ops::Range;
use warpline_family::Op;
use warpline_family::bucket::Bucket;
use warpline_family::error::FamilyError;
use warpline_family::family::{Cost, DeviceKind, Family, Redirects, TestCase};
use warpline_family::field::Fields;
use warpline_family::numbers::Random;
use warpline_family::plan::{Address, Buffer, LaunchStep, Plan, TensorArg, ZEROED_BYTES};
use warpline_family::program::Program;
use warpline_family::tensor::{HostTensor, TensorSpec};
use warpline_ir::{BuildErrors, Kernel, Target};

/// A family that the GEMM kernels serve: its problem, and the conversion to a GEMM problem.
pub trait GemmKind: Send + Sync + 'static {
    /// The family's problem.
    type Problem: Fields + PartialEq;

    /// The family's name.
    const NAME: &'static str;
    /// A one-line description of the computation.
    const ABOUT: &'static str;

    /// Returns the problem as a GEMM.
    fn gemm(problem: &Self::Problem) -> Cow<'_, Problem>;
    /// Returns the same problem with other extents.
    fn with_extents(problem: &Self::Problem, mnk: [u32; 3]) -> Self::Problem;
    /// Returns the problem to run when the caller gives none.
    fn default_problem(device: DeviceKind) -> Self::Problem;
    /// Declares the families that serve other values of a field.
    fn redirects(_: &mut impl Redirects) {}
    /// Draws a valid problem.
    fn draw_problem(random: &mut Random) -> Self::Problem;
    /// Returns the test table.
    fn cases() -> Vec<TestCase<Self::Problem, Choice>>;
    /// Returns test cases that are too large for the CPU executor.
    fn large_cases() -> Vec<TestCase<Self::Problem, Choice>> {
        Vec::new()
    }
    /// Returns the benchmark problems, each with its suite.
    fn bench() -> Vec<(&'static str, Self::Problem)>;
    /// Returns the problems of surveys, each with its survey.
    fn surveys() -> Vec<(&'static str, Self::Problem)> {
        Vec::new()
    }
    /// Returns the ops.
    fn ops() -> Vec<Op<GemmFamily<Self>>>
    where
        Self: Sized;
}

/// The family of a [`GemmKind`].
#[derive(Clone, Copy, Debug, Default)]
pub struct GemmFamily<K>(PhantomData<fn() -> K>);

impl<K> GemmFamily<K> {
    /// The family.
    pub const NEW: Self = Self(PhantomData);
}

/// The kind of [`Gemm`].
#[derive(Clone, Copy, Debug)]
pub struct PlainGemm;
/// The kind of [`Linear`].
#[derive(Clone, Copy, Debug)]
pub struct LinearLayer;

/// `C = A · Bᵀ`.
pub type Gemm = GemmFamily<PlainGemm>;
/// `C = activation(A · Bᵀ + bias)`.
pub type Linear = GemmFamily<LinearLayer>;

/// The benchmark shapes.
const SHAPES: [[u32; 3]; 8] = [
    [2048, 2048, 2048],
    [4096, 4096, 4096],
    [8192, 8192, 8192],
    [4096, 14336, 4096],
    [8192, 28672, 8192],
    [512, 14336, 4096],
    [16, 14336, 4096],
    [4096, 4096, 14336],
];

/// Returns a GEMM of dense bf16 matrices.
fn fp8([m, n, k]: [u32; 3]) -> Problem {
    let scales = true;
    let problem = Problem::new(m, n, k, OperandType::E4m3);
    Problem { scales, ..problem }
}

fn bf16([m, n, k]: [u32; 3]) -> Problem {
    Problem::new(m, n, k, OperandType::Bf16)
}

/// Returns the extents to run when the caller gives none.
fn default_extents(device: DeviceKind) -> [u32; 3] {
    match device {
        DeviceKind::Cpu => [256, 384, 320],
        DeviceKind::Gpu => [4096; 3],
    }
}

impl GemmKind for PlainGemm {
    type Problem = Problem;

    const NAME: &'static str = "gemm";
    const ABOUT: &'static str = "C = A · Bᵀ, with an epilogue";

    fn gemm(problem: &Problem) -> Cow<'_, Problem> {
        Cow::Borrowed(problem)
    }

    fn with_extents(problem: &Problem, mnk: [u32; 3]) -> Problem {
        problem.with_extents(mnk)
    }

    fn default_problem(device: DeviceKind) -> Problem {
        bf16(default_extents(device))
    }

    fn draw_problem(random: &mut Random) -> Problem {
        draw_problem::draw(random)
    }

    fn cases() -> Vec<TestCase<Problem, Choice>> {
        [table::gemm(), layout_table::gemm()].concat()
    }

    fn large_cases() -> Vec<TestCase<Problem, Choice>> {
        table::large()
    }

    fn bench() -> Vec<(&'static str, Problem)> {
        let bf16 = SHAPES.map(|mnk| ("gemm", bf16(mnk)));
        let fp8 = [4096, 8192].map(|n| ("fp8", fp8([n; 3])));
        bf16.into_iter().chain(fp8).collect()
    }

    fn surveys() -> Vec<(&'static str, Problem)> {
        let bf16_layers = layers::linear()
            .into_iter()
            .map(|mnk| ("layers", bf16(mnk)));
        let fp8_layers = layers::fp8()
            .into_iter()
            .map(|mnk| ("layers-fp8", fp8(mnk)));
        let odd = layers::odd()
            .into_iter()
            .map(|mnk| ("odd-pitch", bf16(mnk)));
        bf16_layers.chain(fp8_layers).chain(odd).collect()
    }

    fn ops() -> Vec<Op<Gemm>> {
        vec![call::matmul()]
    }
}

impl GemmKind for LinearLayer {
    type Problem = Problem;

    const NAME: &'static str = "linear";
    const ABOUT: &'static str = "C = activation(A · Bᵀ + bias), a linear layer";

    fn gemm(problem: &Problem) -> Cow<'_, Problem> {
        Cow::Borrowed(problem)
    }

    fn with_extents(problem: &Problem, mnk: [u32; 3]) -> Problem {
        problem.with_extents(mnk)
    }

    fn default_problem(device: DeviceKind) -> Problem {
        let bias = true;
        let gemm = bf16(default_extents(device));
        Problem { bias, ..gemm }
    }

    fn draw_problem(random: &mut Random) -> Problem {
        draw_problem::draw(random)
    }

    fn cases() -> Vec<TestCase<Problem, Choice>> {
        [table::linear(), layout_table::linear()].concat()
    }

    fn bench() -> Vec<(&'static str, Problem)> {
        let problem = |mnk| Problem {
            bias: true,
            activation: Activation::GeluTanh,
            ..bf16(mnk)
        };
        SHAPES.map(|mnk| ("linear", problem(mnk))).into()
    }

    fn ops() -> Vec<Op<Linear>> {
        vec![call::linear()]
    }
}

impl<K: GemmKind> Family for GemmFamily<K> {
    type Problem = K::Problem;
    type Choice = Choice;
    type Config = Config;

    const NAME: &'static str = K::NAME;
    const ABOUT: &'static str = K::ABOUT;

    fn default_problem(device: DeviceKind) -> K::Problem {
        K::default_problem(device)
    }

    fn redirects(to: &mut impl Redirects) {
        K::redirects(to);
    }

    fn check(problem: &K::Problem) -> Result<(), FamilyError> {
        K::gemm(problem).check()
    }

    fn draw_problem(random: &mut Random) -> K::Problem {
        K::draw_problem(random)
    }

    fn config(
        problem: &K::Problem,
        choice: &Choice,
        target: &Target,
    ) -> Result<Config, FamilyError> {
        heuristic::select(&K::gemm(problem), choice, target)
    }

    fn fixed_choice(
        problem: &K::Problem,
        choice: &Choice,
        _: &Target,
    ) -> Result<Choice, FamilyError> {
        batch_invariant::fixed_choice(&K::gemm(problem), choice)
    }

    fn baseline(
        problem: &K::Problem,
        choice: &Choice,
        target: &Target,
    ) -> Result<Config, FamilyError> {
        // Cooperative: one producer, one ring, two consumers that share each 128x128 tile.
        Config::new(&K::gemm(problem), &Choice::default(), choice, target)
    }

    fn candidates(problem: &K::Problem, target: &Target) -> Vec<Config> {
        heuristic::candidates(&K::gemm(problem), target)
    }

    fn plan(problem: &K::Problem, c: &Config, target: &Target) -> Result<Plan, FamilyError> {
        let problem = &*K::gemm(problem);
        let p = &*c.pack.problem(problem);
        let class = p.class();
        let used_bytes = workspace(&class, c);
        let reductions_end = epilogue::reduce::workspace(p, c, used_bytes);
        let operands = PackedOperands::new(c.pack, problem, reductions_end);
        let launch = |sub_gemm: tail::SubGemm| -> Result<LaunchStep, FamilyError> {
            let tail::SubGemm { config: c, cols } = sub_gemm;
            let compiled_in = Config {
                ctas: 0,
                pack: Pack::None,
                ..c
            };
            let kernel = Program::cached(
                format!("gemm {class:?} {compiled_in:?}"),
                target,
                |target| build(&class, &c, target),
            )?;
            launch_step(kernel, p, &c, &cols, &operands)
        };
        let mut steps = operands.launches(&problem.inputs(), target)?;
        for sub_gemm in c.sub_gemms(p, target)? {
            steps.push(launch(sub_gemm)?);
        }
        steps.extend(epilogue::reduce::fold(p, c, used_bytes, target)?);
        Plan::new(steps, operands.workspace)
    }

    fn class(problem: &K::Problem) -> serde_json::Value {
        let p = &*K::gemm(problem);
        let Problem {
            out,
            layout,
            a_layout,
            accumulation,
            ..
        } = p;
        let compiled = p.class();
        let gather = |access: &access::OperandAccess| match access.gather {
            Some(unit) => format!("{unit:?}").to_lowercase().into(),
            None => serde_json::Value::Null,
        };
        let mut class = serde_json::json!({ "dtype": p.dtype, "out": out.unwrap_or(p.out()) });
        let optional = [
            (
                "layout",
                serde_json::json!(layout),
                *layout != OperandLayout::default(),
            ),
            (
                "a_layout",
                serde_json::json!(a_layout),
                *a_layout != ALayout::default(),
            ),
            ("a_gather", gather(&compiled.a), compiled.a.gather.is_some()),
            ("b_gather", gather(&compiled.b), compiled.b.gather.is_some()),
            ("a_shared", true.into(), compiled.a.is_shared),
            ("b_shared", true.into(), compiled.b.is_shared),
            ("c_by_element", true.into(), compiled.c_by_element),
            (
                "epilogue_by_element",
                true.into(),
                compiled.epilogue.by_element,
            ),
            (
                "accumulation",
                serde_json::json!(accumulation),
                *accumulation != Accumulation::default(),
            ),
            (
                "activation",
                serde_json::json!(p.activation),
                p.activation != Activation::None,
            ),
            ("bias", true.into(), p.bias),
            ("residual", true.into(), p.residual),
            ("row_sums", true.into(), p.row_sums),
            ("col_sums", true.into(), p.col_sums),
            ("amax", true.into(), p.amax),
            ("scale", true.into(), p.scale.is_some()),
            ("scales", true.into(), p.scales),
            ("batched", true.into(), p.batch.is_some()),
            ("up", serde_json::json!(p.class().up), p.up.is_some()),
        ];
        for (name, value, _) in optional.into_iter().filter(|(.., is_set)| *is_set) {
            class[name] = value;
        }
        class
    }

    fn bucket(problem: &K::Problem) -> Bucket {
        let p = &*K::gemm(problem);
        let unit = if p.m <= 64 { 16 } else { 128 };
        let mut extents =
            serde_json::json!({ "m": p.m.next_multiple_of(unit), "n": p.n, "k": p.k });
        if let Some(batch) = p.batch {
            extents["batch"] = batch.into();
        }
        Bucket {
            extents,
            rule: "N, K and the batch are exact; M is rounded up to a multiple of 16 (M <= 64) or 128 (M > 64)",
        }
    }

    fn fit(
        problem: &K::Problem,
        choice: &Choice,
        stored: &Choice,
        target: &Target,
    ) -> Result<Config, FamilyError> {
        Config::new(
            &K::gemm(problem),
            &stored.clone().without_grid(),
            choice,
            target,
        )
    }

    fn estimate(problem: &K::Problem, c: &Config, target: &Target) -> Option<f64> {
        Some(heuristic::estimate(&K::gemm(problem), c, target))
    }

    fn cost(problem: &K::Problem) -> Cost {
        let p = &*K::gemm(problem);
        let size = |m: Matrix| {
            let elements = m.rows as f64 * m.cols as f64 * m.batch as f64;
            elements * m.dtype.bytes() as f64
        };
        let vectors = f64::from(p.bias) * f64::from(p.n) * p.out().dtype().bytes() as f64;
        let written = size(p.c()) * (1.0 + f64::from(p.residual));
        let [m, n, k] = [p.m, p.n, p.k].map(f64::from);
        let b_operands = f64::from(p.class().b_operands());
        Cost {
            flops: 2.0 * m * n * k * b_operands * p.batches() as f64,
            bytes: size(p.a()) + size(p.b()) + p.up().map_or(0.0, size) + written + vectors,
        }
    }

    fn inputs(problem: &K::Problem) -> Vec<TensorSpec> {
        K::gemm(problem).inputs()
    }

    fn draw(problem: &K::Problem, seed: u64) -> Vec<HostTensor> {
        reference::inputs(&K::gemm(problem), seed)
    }

    fn outputs(problem: &K::Problem) -> Vec<TensorSpec> {
        K::gemm(problem).outputs()
    }

    fn reference(problem: &K::Problem, inputs: &[HostTensor]) -> Vec<Vec<(f64, f64)>> {
        reference::reference(&K::gemm(problem), inputs)
    }

    fn cases() -> Vec<TestCase<K::Problem, Choice>> {
        K::cases()
    }

    fn bench() -> Vec<(&'static str, K::Problem)> {
        K::bench()
    }

    fn surveys() -> Vec<(&'static str, K::Problem)> {
        K::surveys()
    }

    fn ops() -> Vec<Op<Self>> {
        K::ops()
    }

    fn large_cases() -> Vec<TestCase<K::Problem, Choice>> {
        K::large_cases()
    }

    fn reduced(problem: &K::Problem, config: &Config) -> Option<(K::Problem, Config)> {
        let &Problem { m, n, k, .. } = &*K::gemm(problem);
        let with = |m: u32| K::with_extents(problem, [m, n.min(520), k.min(592)]);
        if config.tail_n.is_none() {
            let small = with(m.min(300));
            return (small != *problem).then_some((small, *config));
        }
        // One full wave, and a narrow one for the last column of tiles.
        let small = with(m.min(2 * config.tile_m));
        let [m_tiles, n_tiles] = config.tiles(&K::gemm(&small));
        let ctas = m_tiles * n_tiles.saturating_sub(1).max(1);
        let config = Config {
            ctas: ctas as u32,
            ..*config
        };
        (small != *problem).then_some((small, config))
    }

    fn period(problem: &K::Problem) -> Option<K::Problem> {
        let p = &*K::gemm(problem);
        // Each row of C depends on one row of A, so a few rows can be repeated. Their number is odd, so
        // that each of them occurs at every row of a tile.
        let b_operands = u64::from(p.class().b_operands());
        let weight_elements = b_operands * u64::from(p.n) * u64::from(p.k).max(1);
        let rows = ((1 << 29) / weight_elements).clamp(2, 200) as u32 | 1;
        let is_periodic = p.batch.is_none() && p.class().epilogue.reductions().is_empty();
        (is_periodic && p.m > rows).then(|| K::with_extents(problem, [rows, p.n, p.k]))
    }
}

/// Builds the kernel of a class and a config.
fn build(class: &Class, c: &Config, target: &Target) -> Result<Kernel, BuildErrors> {
    let name = match class.up {
        None => "gemm",
        Some(_) => "dual_gemm",
    };
    Kernel::build(name, target, |k| schedule::declare(k, class, c))
}

/// Returns the workspace bytes of the GEMM kernel: the work queue, or the flags and partial tiles of
/// stream-K and split-K.
fn workspace(class: &Class, c: &Config) -> u64 {
    match (c.schedule, c.schedule.tiles()) {
        _ if c.schedule.has_partial_tiles() => ZEROED_BYTES + c.partial_bytes(class),
        (_, TileAssignment::Dynamic(_)) => 8,
        _ => 0,
    }
}

/// Returns the launch of a kernel that computes the columns `cols` of C.
fn launch_step(
    kernel: Program,
    p: &Problem,
    c: &Config,
    cols: &Range<u32>,
    operands: &PackedOperands,
) -> Result<LaunchStep, FamilyError> {
    let (class, inputs) = (p.class(), p.inputs());
    let n = cols.len() as u32;
    let tensor = |address: Address, m: Matrix| {
        let size = m.dtype.bytes() as u64;
        // K == 0: no operand is read, so any valid address will do.
        let (address, cols) = match m.cols.min(m.rows) {
            0 => (Buffer::Output(0).at(address.offset), 16 / size),
            _ => (address, m.cols),
        };
        // The stride of a single row does not matter, but must be legal.
        let (rows, stride) = match m.rows {
            0 | 1 => (1, (cols * size).next_multiple_of(16)),
            rows => (rows, m.stride.max(cols) * size),
        };
        let batch_stride = match m.batch {
            0 | 1 => rows * stride,
            _ => m.batch_stride * size,
        };
        match class.batched && !m.is_shared() {
            false => TensorArg::strided(address, vec![cols, rows], vec![stride]),
            true => TensorArg::strided(
                address,
                vec![cols, rows, m.batch],
                vec![stride, batch_stride],
            ),
        }
    };
    let parts = match c.schedule.exchanges_in_memory() {
        false => 1,
        true => c.schedule.split_k(),
    };
    let step = LaunchStep::new(kernel, [c.ctas / parts, parts, 1])
        .scalar("m", p.m)
        .scalar("n", n)
        .scalar("k", p.k);
    let step = c.tile_schedule(class.batched).bind_args(
        step,
        [p.m, n],
        p.batch.map(|_| p.batches() as u32),
    );
    let address = |name: &str| operands.address(&inputs, name);
    let step = mainloop::Mainloop::bind_args(step, p, address, cols, tensor)?;
    let mut step = epilogue::bind_args(step, p, c, &inputs, cols, workspace(&class, c), tensor)?;
    if c.schedule.exchanges_in_memory() {
        let k_tiles = p.k.div_ceil(c.tile_k);
        step = step
            .scalar("parts", parts)
            .scalar("part_k_tiles", k_tiles / parts)
            .scalar("larger_parts", k_tiles % parts);
    }
    if c.schedule.has_partial_tiles() {
        let consumers = c.consumers();
        // Each consumer has its own partial tiles, and its own flags in the zeroed bytes.
        let partial = c.partial_bytes(&class) / u64::from(consumers);
        let flags = u64::from(c.ctas) * 16;
        for (i, consumer) in (0..consumers.into()).zip(schedule::CONSUMERS) {
            let name = schedule::partials_name(consumer);
            step = step
                .pointer(&name, Buffer::Workspace.at(ZEROED_BYTES + i * partial))
                .pointer(&format!("{name}_flags"), Buffer::Workspace.at(i * flags));
        }
    }
    Ok(step)
}
