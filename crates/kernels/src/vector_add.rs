//! `c = a + b`, element by element: the smallest warp-specialized kernel, beside simpler
//! schedules.

use half::{bf16, f16};
use serde_json::{Value, json};
use std::ops::Add;
use warpline_family::Op;
use warpline_family::bucket::{Bucket, power_of_two_bucket};
use warpline_family::error::FamilyError;
use warpline_family::family::{DeviceKind, Family, TestCase, trip_counts};
pub use warpline_family::float::FloatType;
use warpline_family::numbers::{Random, half_ulp};
use warpline_family::op::layout::merge_dims;
use warpline_family::op::{OpArgs, OpOutput, OpParam, OutputDim, Signature, TensorView};
use warpline_family::plan::{Buffer, LaunchStep, Plan};
use warpline_family::program::Program;
use warpline_family::resources::resources;
use warpline_family::tensor::{HostTensor, TensorSpec};
use warpline_family::{config, fields, keywords};
use warpline_ir::builder::*;
use warpline_ir::{Bf16x2, Element, F16x2, Kernel, Scalar, Target};

/// The vector-add family.
#[derive(Clone, Copy, Debug)]
pub struct VectorAdd;

fields! {
    /// The vectors to add.
    pub struct Problem {
        /// Elements of each vector
        pub n: u64,
        /// Element type
        pub dtype: FloatType,
    }
}

keywords! {
    /// The division of the kernel into roles.
    pub enum Schedule {
        /// Every thread loads, adds and stores 16-byte vectors
        GridStride = "grid-stride",
        /// As grid-stride, one element at a time: for vectors that are not aligned to 16 bytes
        Elements = "elements",
        /// Every warp adds; bulk copies load one tile ahead
        DoubleBuffer = "double-buffer",
        /// Roles load, compute and store, connected by two rings
        Specialized = "specialized",
    }
}

impl Schedule {
    /// Returns whether tiles are loaded into shared memory.
    fn has_ring(self) -> bool {
        matches!(self, Schedule::DoubleBuffer | Schedule::Specialized)
    }
}

config! {
    /// The complete set of tuning parameters.
    #[derive(Copy, Eq)]
    pub struct Config {
        /// Division of the kernel into roles
        pub schedule: Schedule,
        /// Stages of each ring (double-buffer: 2)
        pub stages: u32,
        /// Bytes of each vector per tile, a multiple of 16 per thread
        pub tile: u32 [BYTES],
        /// Warps that add
        pub warps: u32,
        /// CTAs of the grid
        pub ctas: u32,
    }
    /// The tuning parameters that the caller fixes.
    pub struct Choice;
}

/// Bytes of one access.
const VECTOR_BYTES: u32 = 16;

/// The maximum number of elements of a vector.
const MAX_ELEMENTS: u64 = 1 << 40;

impl Config {
    /// Returns the number of threads that add.
    fn threads(&self) -> u32 {
        self.warps * 32
    }

    /// Returns the maximum size of a vector in bytes. A tile index has 32 bits, and the loop counter
    /// runs up to one grid past the end.
    fn max_bytes(&self) -> u64 {
        u64::from(self.tile) << 31
    }

    /// Returns the number of 16-byte accesses of one thread to one tile of a vector.
    fn accesses(&self) -> u32 {
        self.tile / (self.threads() * VECTOR_BYTES)
    }
}

impl Family for VectorAdd {
    type Problem = Problem;
    type Choice = Choice;
    type Config = Config;

    const NAME: &'static str = "vector-add";
    const ABOUT: &'static str = "c = a + b, element by element";

    fn default_problem(device: DeviceKind) -> Problem {
        Problem {
            n: match device {
                DeviceKind::Cpu => 1_000_000,
                DeviceKind::Gpu => 1 << 25,
            },
            dtype: FloatType::F32,
        }
    }

    fn check(p: &Problem) -> Result<(), FamilyError> {
        if p.n > MAX_ELEMENTS {
            return Err(FamilyError::Problem(format!(
                "--n must be at most {MAX_ELEMENTS}, not {}",
                p.n
            )));
        }
        Ok(())
    }

    fn draw_problem(random: &mut Random) -> Problem {
        Problem {
            n: random.extent(0..=MAX_ELEMENTS),
            dtype: random.pick(FloatType::ALL),
        }
    }

    fn config(p: &Problem, choice: &Choice, target: &Target) -> Result<Config, FamilyError> {
        // `--stages` implies a schedule with rings.
        let schedule = choice.schedule.unwrap_or(match choice.stages {
            None => Schedule::GridStride,
            Some(_) => Schedule::Specialized,
        });
        let reject = |text: String| Err(FamilyError::Config(text));
        let stages = match (schedule, choice.stages) {
            (Schedule::GridStride | Schedule::Elements, None) => 1,
            (Schedule::GridStride | Schedule::Elements, Some(s)) => {
                let schedule = if schedule == Schedule::Elements {
                    "elements"
                } else {
                    "grid-stride"
                };
                return reject(format!(
                    "--stages {s} requires a schedule with a ring (selected: {schedule})\nhelp: use --schedule specialized"
                ));
            }
            (Schedule::DoubleBuffer, None | Some(2)) => 2,
            (Schedule::DoubleBuffer, Some(s)) => {
                return reject(format!("--schedule double-buffer has 2 stages, not {s}"));
            }
            (Schedule::Specialized, None) => 3,
            (Schedule::Specialized, Some(0)) => {
                return reject("--stages is 0, but a ring needs at least 1 stage".into());
            }
            (Schedule::Specialized, Some(s)) => s,
        };
        let warps = choice
            .warps
            .unwrap_or(if schedule.has_ring() { 8 } else { 4 });
        let max_warps = if schedule == Schedule::Specialized {
            30
        } else {
            32
        };
        if warps == 0 || warps > max_warps {
            return reject(format!("--warps must be 1 to {max_warps}, not {warps}"));
        }
        let step_bytes = warps * 32 * VECTOR_BYTES;
        let default_tile = step_bytes * if schedule.has_ring() { 4 } else { 1 };
        let tile = choice.tile.unwrap_or(default_tile);
        if tile == 0 || !tile.is_multiple_of(step_bytes) || !(tile / step_bytes).is_power_of_two() {
            return reject(format!(
                "--tile must be a power of two times {step_bytes} bytes (16 per thread of {warps} warps), not {tile}"
            ));
        }
        if !warps.is_power_of_two() {
            return reject(format!("--warps must be a power of two, not {warps}"));
        }
        let mut config = Config {
            schedule,
            stages,
            tile,
            warps,
            ctas: 1,
        };
        let shared_bytes = match schedule.has_ring() {
            true => {
                let description = format!("{stages} stages of {tile} bytes");
                resources(&description, target, |k| roles(k, p.dtype, &config))?.shared_bytes
            }
            false => 0,
        };
        let bytes = p.n.saturating_mul(p.dtype.dtype().bytes() as u64);
        if bytes > config.max_bytes() {
            return reject(format!(
                "{bytes} bytes are more than 2147483648 tiles of {tile} bytes\nhelp: use a larger --tile"
            ));
        }
        let tiles = bytes.div_ceil(u64::from(tile)).clamp(1, 1 << 30);
        let max_ctas = match schedule.has_ring() {
            // One CTA per tile: the hardware scheduler balances the SMs, which a persistent grid does not.
            false => tiles,
            true => {
                let per_sm = (target.shared_bytes / shared_bytes.max(1)).clamp(1, 4);
                u64::from(target.sms * per_sm.min(64 / warps.max(1)).max(1))
            }
        };
        config.ctas = match choice.ctas {
            None => tiles.min(max_ctas) as u32,
            Some(0) => return reject("--ctas is 0, but a grid needs at least 1 CTA".into()),
            Some(n) => n,
        };
        Ok(config)
    }

    fn baseline(p: &Problem, choice: &Choice, target: &Target) -> Result<Config, FamilyError> {
        // Grid-stride has no synchronization.
        let schedule = choice.schedule.or(Some(Schedule::GridStride));
        let choice = Choice {
            schedule,
            ..choice.clone()
        };
        Self::config(p, &choice, target)
    }

    fn choices(_: &Problem) -> Vec<Choice> {
        let mut all = vec![Choice::default()];
        let schedules = [
            (Schedule::GridStride, None),
            (Schedule::DoubleBuffer, None),
            (Schedule::Specialized, Some(2)),
            (Schedule::Specialized, Some(3)),
            (Schedule::Specialized, Some(4)),
        ];
        for (schedule, stages) in schedules {
            for warps in [4, 8] {
                for per_thread in [2, 4, 8] {
                    all.push(Choice {
                        schedule: Some(schedule),
                        stages,
                        tile: Some(per_thread * warps * 32 * VECTOR_BYTES),
                        warps: Some(warps),
                        ctas: None,
                    });
                }
            }
        }
        all
    }

    fn plan(p: &Problem, c: &Config, target: &Target) -> Result<Plan, FamilyError> {
        let compiled_in = Config { ctas: 0, ..*c };
        let key = format!("{} {:?} {compiled_in:?}", Self::NAME, p.dtype);
        let kernel = Program::cached(key, target, |target| {
            Kernel::build("vector_add", target, |k| roles(k, p.dtype, c))
        })?;
        let step = LaunchStep::new(kernel, [c.ctas, 1, 1])
            .scalar("n", p.n)
            .pointer("a", Buffer::Input(0))
            .pointer("b", Buffer::Input(1))
            .pointer("c", Buffer::Output(0));
        Plan::new(vec![step], 0)
    }

    fn flops(p: &Problem) -> f64 {
        p.n as f64
    }

    fn inputs(p: &Problem) -> Vec<TensorSpec> {
        ["a", "b"].map(|name| spec(name, p)).into()
    }

    fn outputs(p: &Problem) -> Vec<TensorSpec> {
        vec![spec("c", p)]
    }

    fn reference(p: &Problem, inputs: &[HostTensor]) -> Vec<Vec<(f64, f64)>> {
        // One rounding: half an ulp of the sum.
        let sum = inputs[0]
            .values()
            .zip(inputs[1].values())
            .map(|(a, b)| a + b);
        vec![sum.map(|c| (c, half_ulp(p.dtype.dtype(), c))).collect()]
    }

    fn cases() -> Vec<TestCase<Problem, Choice>> {
        let mut cases = Vec::new();
        let tile = 2048; // bytes
        for (schedule, stages) in [
            (Schedule::GridStride, None),
            (Schedule::Elements, None),
            (Schedule::DoubleBuffer, None),
            (Schedule::Specialized, Some(1)),
            (Schedule::Specialized, Some(3)),
        ] {
            for dtype in [FloatType::F32, FloatType::F16, FloatType::Bf16] {
                let per_tile = u64::from(tile) / dtype.dtype().bytes() as u64;
                // Full and partial tiles of one CTA.
                let trips = trip_counts(stages.unwrap_or(2)).map(u64::from);
                let full = trips.iter().map(|t| t * per_tile);
                let partial = trips.iter().map(|t| t * per_tile + per_tile / 2 + 3);
                let edges = [1, 7, per_tile - 1, per_tile + 1];
                for n in full.chain(partial).chain(edges) {
                    for ctas in [1, 3] {
                        cases.push(TestCase {
                            problem: Problem { n, dtype },
                            choice: Choice {
                                schedule: Some(schedule),
                                stages,
                                tile: Some(tile),
                                warps: Some(1),
                                ctas: Some(ctas),
                            },
                        });
                    }
                }
            }
        }
        cases
    }

    fn bench() -> Vec<(&'static str, Problem)> {
        let problem = Problem {
            n: 1 << 28,
            dtype: FloatType::F32,
        };
        vec![("memory", problem)]
    }

    fn class(p: &Problem) -> Value {
        json!({ "dtype": p.dtype })
    }

    fn bucket(p: &Problem) -> Bucket {
        Bucket {
            extents: json!({ "n": power_of_two_bucket(p.n) }),
            rule: "vector lengths up to the same power of two: the length changes only the number of tiles",
        }
    }

    fn fit(
        p: &Problem,
        choice: &Choice,
        stored: &Choice,
        target: &Target,
    ) -> Result<Config, FamilyError> {
        let has_ring = stored.schedule.is_some_and(Schedule::has_ring);
        let fitted = Choice {
            stages: stored.stages.filter(|_| has_ring),
            ctas: choice.ctas,
            ..stored.clone()
        };
        Self::config(p, &fitted, target)
    }

    fn ops() -> Vec<Op<Self>> {
        vec![Op {
            signature: Signature {
                name: "add",
                about: Self::ABOUT,
                params: vec![
                    OpParam::tensor("a", "The first summand: f32, f16 or bf16, dense."),
                    OpParam::tensor(
                        "b",
                        "The second summand, with the same type, shape and strides.",
                    ),
                ],
                outputs: vec![OpOutput {
                    name: "c",
                    dims: &[OutputDim::All("a")],
                    dtype_of: "a",
                    dtype_override: None,
                    fixed_dtype: None,
                }],
                optional_output: None,
                example: EXAMPLE,
            },
            problem: problem_of_call,
            args: |p| {
                ["a", "b"]
                    .map(|_| TensorView::dense(p.dtype.dtype(), &[p.n], 0).into())
                    .into()
            },
        }]
    }

    fn period(p: &Problem) -> Option<Problem> {
        let small = Problem {
            n: 1 << 22,
            ..p.clone()
        };
        (p.n > small.n).then_some(small)
    }
}

const EXAMPLE: &str = "\
>>> a = np.arange(4, dtype=np.float32)
>>> warpline.add(a, a)
array([0., 2., 4., 6.], dtype=float32)";

/// Returns the problem of a call: any shape whose tensors have the same dense strides.
fn problem_of_call(call: &OpArgs<'_>) -> Result<(Problem, Choice), FamilyError> {
    let (a, b, c) = (call.tensor("a")?, call.tensor("b")?, &call.outs[0]);
    let Some(dtype) = FloatType::from_dtype(a.dtype) else {
        return call.reject(format!("a must be f32, f16 or bf16, not {}", a.dtype));
    };
    if (a.dtype, &a.shape) != (b.dtype, &b.shape) {
        return call.reject(format!(
            "a and b must have the same type and shape, not {a} and {b}"
        ));
    }
    match &merge_dims(&a.shape, &[&a.strides, &b.strides, &c.strides])[..] {
        [] => {}
        [one] if one.strides == [1; 3] => {}
        _ if a.elements() == 0 => {}
        _ => {
            return call.unsupported_layout(format!(
                "a, b and c must be dense with the same strides, not {:?}, {:?} and {:?}: \
                 make them contiguous",
                a.strides, b.strides, c.strides
            ));
        }
    }
    let choice = Choice {
        schedule: (!call.is_16_byte_aligned()).then_some(Schedule::Elements),
        ..Choice::default()
    };
    let n = a.elements();
    Ok((Problem { n, dtype }, choice))
}

fn spec(name: &'static str, p: &Problem) -> TensorSpec {
    TensorSpec {
        name,
        dtype: p.dtype.dtype(),
        shape: vec![p.n as usize],
    }
}

/// Declares the kernel of an element type and a config.
fn roles(k: Builder, dtype: FloatType, c: &Config) {
    match dtype {
        FloatType::F32 => roles_for_type::<f32>(k, c),
        FloatType::F16 => roles_for_type::<f16>(k, c),
        FloatType::Bf16 => roles_for_type::<bf16>(k, c),
    }
}

fn roles_for_type<E: Summand>(k: Builder, c: &Config) {
    match c.schedule {
        Schedule::GridStride => grid_stride::<E>(k, c),
        Schedule::Elements => elements::<E>(k, c),
        Schedule::DoubleBuffer => double_buffer::<E>(k, c),
        Schedule::Specialized => specialized::<E>(k, c),
    }
}

/// An element type, and the 32-bit register type in which it is added.
trait Summand: Element<Reg = Self::One> {
    /// One element.
    type One: Scalar;
    /// A 32-bit register with as many elements as fit.
    type Word: Scalar;
    fn add_one(a: Reg<Self::One>, b: Reg<Self::One>) -> Reg<Self::One>;
    fn add_word(a: Reg<Self::Word>, b: Reg<Self::Word>) -> Reg<Self::Word>;
}

macro_rules! summand {
    ($($e:ty, $word:ty;)*) => {$(
        impl Summand for $e {
            type One = $e;
            type Word = $word;
            #[track_caller]
            fn add_one(a: Reg<$e>, b: Reg<$e>) -> Reg<$e> { Add::add(a, b) }
            #[track_caller]
            fn add_word(a: Reg<$word>, b: Reg<$word>) -> Reg<$word> { Add::add(a, b) }
        }
    )*};
}
summand! {
    f32, f32;
    f16, F16x2;
    bf16, Bf16x2;
}

/// The 16 bytes that one thread adds at a time.
type Vector<E> = [Reg<<E as Summand>::Word>; 4];

fn add_vectors<E: Summand>(a: Vector<E>, b: Vector<E>) -> Vector<E> {
    std::array::from_fn(|i| E::add_word(a[i], b[i]))
}

/// The launch parameters. The work is divided into tiles of whole 16-byte vectors and a tail of
/// single elements.
#[derive(Clone, Copy)]
struct AddParams<E> {
    a: Global<E>,
    b: Global<E>,
    c: Global<E>,
    /// Number of elements.
    n: Reg<u64>,
    /// Bytes in whole vectors.
    bytes: Reg<u64>,
    tile: u32,
}

impl<E: Summand> AddParams<E> {
    const SIZE: u32 = E::DTYPE.bytes() as u32;
    /// Elements of one vector.
    const PER_VECTOR: u32 = VECTOR_BYTES / Self::SIZE;

    fn declare(k: Builder, c: &Config) -> Self {
        let max_elements = c.max_bytes() / u64::from(Self::SIZE);
        let n = k.param::<u64>("n").at_most(max_elements.min(MAX_ELEMENTS));
        let [a, b, out] = ["a", "b", "c"].map(|name| {
            let elements = k.pointer(name).elements(n);
            match c.schedule {
                Schedule::Elements => elements,
                _ => elements.aligned_to(VECTOR_BYTES.into()),
            }
        });
        Self {
            a,
            b,
            c: out,
            n,
            bytes: (n << Self::SIZE.trailing_zeros()) & !u64::from(VECTOR_BYTES - 1),
            tile: c.tile,
        }
    }

    /// Runs `body(first_element, bytes)` for each tile of this CTA.
    fn for_each_tile(self, body: impl FnOnce(Reg<u64>, Reg<u32>)) {
        let shift = self.tile.trailing_zeros();
        let tiles = ((self.bytes + u64::from(self.tile - 1)) >> shift).cast::<u32>();
        range(cta_id(), tiles).step_by(grid_ctas()).each(|t| {
            let start = t.mul_wide(self.tile);
            let bytes = (self.bytes - start).min(u64::from(self.tile)).cast::<u32>();
            body(start >> Self::SIZE.trailing_zeros(), bytes);
        });
    }

    /// Runs `f(constant, per_thread)` for each vector of a tile that this thread adds. The element index
    /// is the sum of both arguments; the constant becomes an immediate.
    fn for_each_vector(c: &Config, bytes: Reg<u32>, f: impl Fn(u32, Reg<u32>)) {
        let first = thread_in_role() * Self::PER_VECTOR;
        let stride = c.threads() * Self::PER_VECTOR;
        if_else(
            bytes.eq(c.tile),
            || (0..c.accesses()).for_each(|i| f(i * stride, first)),
            || {
                for i in 0..c.accesses() {
                    let byte = (first + i * stride) * Self::SIZE;
                    if_(byte.lt(bytes), || f(i * stride, first));
                }
            },
        );
    }

    /// Adds the elements after the last whole vector: one per thread, in CTA 0.
    fn add_tail(self) {
        let first = self.bytes >> Self::SIZE.trailing_zeros();
        let i = first + thread_in_role().cast::<u64>();
        if_(i.lt(self.n) & cta_id().eq(0), || {
            self.c.store(i, E::add_one(self.a.load(i), self.b.load(i)));
        });
    }
}

/// Every thread loads, adds and stores.
fn grid_stride<E: Summand>(k: Builder, c: &Config) {
    let params = AddParams::<E>::declare(k, c);
    k.role("all").warps(c.warps).body(|| {
        let threads = c.threads();
        params.for_each_tile(|start, bytes| {
            let (a, b, out) = (
                params.a.offset(start),
                params.b.offset(start),
                params.c.offset(start),
            );
            let first = thread_in_role() * AddParams::<E>::PER_VECTOR;
            let stride = threads * AddParams::<E>::PER_VECTOR;
            let index = |i: u32| first + i * stride;
            if_else(
                bytes.eq(c.tile),
                || {
                    // All loads of a tile are in flight before the first add.
                    let load = |from: Global<E>| -> Vec<Vector<E>> {
                        (0..c.accesses()).map(|i| from.load_as(index(i))).collect()
                    };
                    let (x, y) = (load(a), load(b));
                    for (i, (&x, y)) in x.iter().zip(y).enumerate() {
                        out.store_as(index(i as u32), add_vectors::<E>(x, y));
                    }
                },
                || {
                    for i in 0..c.accesses() {
                        if_((index(i) * AddParams::<E>::SIZE).lt(bytes), || {
                            let sum = add_vectors::<E>(a.load_as(index(i)), b.load_as(index(i)));
                            out.store_as(index(i), sum);
                        });
                    }
                },
            );
        });
        params.add_tail();
    });
}

/// Every thread loads, adds and stores single elements.
fn elements<E: Summand>(k: Builder, c: &Config) {
    let params = AddParams::<E>::declare(k, c);
    k.role("all").warps(c.warps).body(|| {
        params.for_each_tile(|start, bytes| {
            let (a, b, out) = (
                params.a.offset(start),
                params.b.offset(start),
                params.c.offset(start),
            );
            let per_thread = c.tile / AddParams::<E>::SIZE / c.threads();
            let index = |j: u32| thread_in_role() + j * c.threads();
            if_else(
                bytes.eq(c.tile),
                || {
                    let load = |from: Global<E>| -> Vec<Reg<E::One>> {
                        (0..per_thread).map(|j| from.load(index(j))).collect()
                    };
                    let (x, y) = (load(a), load(b));
                    for (j, (&x, y)) in x.iter().zip(y).enumerate() {
                        out.store(index(j as u32), E::add_one(x, y));
                    }
                },
                || {
                    for j in 0..per_thread {
                        if_((index(j) * AddParams::<E>::SIZE).lt(bytes), || {
                            out.store(index(j), E::add_one(a.load(index(j)), b.load(index(j))));
                        });
                    }
                },
            );
        });
        params.add_tail();
    });
}

/// Every warp adds; one thread keeps the copies of the next tile in flight.
fn double_buffer<E: Summand>(k: Builder, c: &Config) {
    let params = AddParams::<E>::declare(k, c);
    let len = c.tile / AddParams::<E>::SIZE;
    let tiles = k.ring("tiles", c.stages, |s| {
        (s.vector::<E>(len), s.vector::<E>(len))
    });
    k.role("all").warps(c.warps).body(|| {
        let load = |start: Reg<u64>, bytes: Reg<u32>| {
            elect(|| {
                let slot = tiles.acquire();
                slot.load_bytes(slot.0, params.a.address(start), bytes);
                slot.load_bytes(slot.1, params.b.address(start), bytes);
                slot.commit();
            });
        };
        let (previous_start, previous_bytes) = (Var::new(0u64), Var::new(0u32));
        let has_previous = Var::new(false);
        let add = |start: Reg<u64>, bytes: Reg<u32>| {
            let slot = tiles.wait();
            let (a, b, out) = (slot.0, slot.1, params.c.offset(start));
            AddParams::<E>::for_each_vector(c, bytes, |i, first| {
                let (a, b) = (a.slice(0..1, i..len), b.slice(0..1, i..len));
                let sum = add_vectors::<E>(a.load_as(0u32, first), b.load_as(0u32, first));
                out.store_as(first + i, sum);
            });
            slot.release();
        };
        // Software pipeline of depth one: load this tile, then add the previous one.
        params.for_each_tile(|start, bytes| {
            load(start, bytes);
            if_(has_previous.get(), || {
                add(previous_start.get(), previous_bytes.get())
            });
            has_previous.set(true);
            previous_start.set(start);
            previous_bytes.set(bytes);
        });
        if_(has_previous.get(), || {
            add(previous_start.get(), previous_bytes.get())
        });
        params.add_tail();
    });
}

/// load → compute → store.
fn specialized<E: Summand>(k: Builder, c: &Config) {
    let params = AddParams::<E>::declare(k, c);
    let len = c.tile / AddParams::<E>::SIZE;
    let inputs = k.ring("in", c.stages, |s| (s.vector::<E>(len), s.vector::<E>(len)));
    let sums = k.ring("out", c.stages, |s| s.vector::<E>(len));

    k.role("compute").warps(c.warps).body(|| {
        params.for_each_tile(|_, bytes| {
            let (slot, out) = (inputs.wait(), sums.acquire());
            AddParams::<E>::for_each_vector(c, bytes, |i, first| {
                let from_i = |t: TileRef<E>| t.slice(0..1, i..len);
                let (a, b) = (from_i(slot.0), from_i(slot.1));
                let sum = add_vectors::<E>(a.load_as(0u32, first), b.load_as(0u32, first));
                from_i(out.tiles()).store_as(0u32, first, sum);
            });
            slot.release();
            out.commit();
        });
        params.add_tail();
    });

    k.role("load").warps(1).body(|| {
        elect(|| {
            params.for_each_tile(|start, bytes| {
                let slot = inputs.acquire();
                slot.load_bytes(slot.0, params.a.address(start), bytes);
                slot.load_bytes(slot.1, params.b.address(start), bytes);
                slot.commit();
            });
        });
    });

    k.role("store").warps(1).body(|| {
        elect(|| {
            params.for_each_tile(|start, bytes| {
                let slot = sums.wait();
                bulk_store(slot.tiles(), params.c.address(start), bytes);
                bulk_commit();
                bulk_wait_read(0);
                slot.release();
            });
        });
    });
}
