//! `c = a + b`, element by element: the smallest assembly line, in three forms to compare.

use half::{bf16, f16};
use serde_json::{Value, json};
use std::ops::Add;
use warpline_family::Op;
use warpline_family::bucket::{Bucket, doubling};
use warpline_family::error::FamilyError;
use warpline_family::family::{Case, Family, Place, trips};
pub use warpline_family::float::Float;
use warpline_family::numbers::half_ulp;
use warpline_family::op::layout::walk;
use warpline_family::op::{Call, Output, Param, Side, Signature, TensorView};
use warpline_family::plan::{Buffer, Plan, Step};
use warpline_family::program::Program;
use warpline_family::resources::resources;
use warpline_family::tensor::{HostTensor, TensorSpec};
use warpline_family::{config, fields, words};
use warpline_ir::build::*;
use warpline_ir::{Bf16x2, Element, F16x2, Kernel, Scalar, Target};

/// The family.
#[derive(Clone, Copy, Debug)]
pub struct VectorAdd;

fields! {
    /// The problem.
    pub struct Problem {
        /// Elements of each vector
        pub n: u64,
        /// Element type
        pub dtype: Float,
    }
}

words! {
    /// The structure of the program.
    pub enum Form {
        /// Every thread loads, adds and stores
        GridStride = "grid-stride",
        /// The same, one element at a time: for vectors that do not start on 16 bytes
        Elements = "elements",
        /// Every warp waits for bulk copies one tile ahead, adds and stores
        DoubleBuffer = "double-buffer",
        /// loader → compute → storer, through two rings
        Specialized = "specialized",
    }
}

impl Form {
    /// Does it bring tiles to shared memory?
    fn has_rings(self) -> bool {
        matches!(self, Form::DoubleBuffer | Form::Specialized)
    }
}

config! {
    /// A complete config.
    #[derive(Copy, Eq)]
    pub struct Config {
        /// The structure of the program
        pub form: Form,
        /// Stages of each ring (double-buffer: 2)
        pub stages: u32,
        /// Bytes of each vector in one tile, a multiple of 16 per thread
        pub tile: u32 [BYTES],
        /// Warps that add
        pub warps: u32,
        /// CTAs of the grid
        pub ctas: u32,
    }
    /// What the caller fixes of the config.
    pub struct Choice;
}

/// Bytes of one access.
const VECTOR: u32 = 16;

/// The most elements of a vector.
const MOST: u64 = 1 << 40;

impl Config {
    /// Threads that add.
    fn threads(&self) -> u32 {
        self.warps * 32
    }

    /// The most bytes of a vector: tiles are counted in 32 bits, with room for a step of the grid.
    fn most_bytes(&self) -> u64 {
        u64::from(self.tile) << 31
    }

    /// 16-byte accesses of one thread per tile and vector.
    fn accesses(&self) -> u32 {
        self.tile / (self.threads() * VECTOR)
    }
}

impl Family for VectorAdd {
    type Problem = Problem;
    type Choice = Choice;
    type Config = Config;

    const NAME: &'static str = "vector-add";
    const ABOUT: &'static str = "c = a + b, element by element";

    fn default_problem(place: Place) -> Problem {
        Problem {
            n: match place {
                Place::Cpu => 1_000_000,
                Place::Gpu => 1 << 25,
            },
            dtype: Float::F32,
        }
    }

    fn check(p: &Problem) -> Result<(), FamilyError> {
        if p.n > MOST {
            return Err(FamilyError::Problem(format!(
                "vector-add takes at most {MOST} elements, not {}",
                p.n
            )));
        }
        Ok(())
    }

    fn config(p: &Problem, choice: &Choice, target: &Target) -> Result<Config, FamilyError> {
        // Whoever asks for stages asks for rings.
        let form = choice.form.unwrap_or(match choice.stages {
            None => Form::GridStride,
            Some(_) => Form::Specialized,
        });
        let refuse = |text: String| Err(FamilyError::Config(text));
        let stages = match (form, choice.stages) {
            (Form::GridStride | Form::Elements, None) => 1,
            (Form::GridStride | Form::Elements, Some(s)) => {
                let form = if form == Form::Elements {
                    "elements"
                } else {
                    "grid-stride"
                };
                return refuse(format!(
                    "form {form} has no ring, so --stages {s} has no meaning: choose --form specialized"
                ));
            }
            (Form::DoubleBuffer, None | Some(2)) => 2,
            (Form::DoubleBuffer, Some(s)) => {
                return refuse(format!("form double-buffer has 2 stages, not {s}"));
            }
            (Form::Specialized, None) => 3,
            (Form::Specialized, Some(0)) => {
                return refuse("a ring has at least 1 stage, not 0".into());
            }
            (Form::Specialized, Some(s)) => s,
        };
        let warps = choice.warps.unwrap_or(if form.has_rings() { 8 } else { 4 });
        let most = if form == Form::Specialized { 30 } else { 32 };
        if warps == 0 || warps > most {
            return refuse(format!("1 to {most} warps can add, not {warps}"));
        }
        let unit = warps * 32 * VECTOR;
        let usual = if form.has_rings() { 4 * unit } else { unit };
        let tile = choice.tile.unwrap_or(usual);
        if tile == 0 || !tile.is_multiple_of(unit) || !(tile / unit).is_power_of_two() {
            return refuse(format!(
                "a tile is 1, 2, 4, … times {unit} bytes (16 per thread of {warps} warps), not {tile}"
            ));
        }
        if !warps.is_power_of_two() {
            return refuse(format!(
                "the number of warps that add is a power of two, not {warps}"
            ));
        }
        let mut config = Config {
            form,
            stages,
            tile,
            warps,
            ctas: 1,
        };
        let needed = match form.has_rings() {
            true => {
                let what = format!("{stages} stages of {tile} bytes");
                resources(&what, target, |k| roles(k, p.dtype, &config))?.shared_bytes
            }
            false => 0,
        };
        let bytes = p.n.saturating_mul(p.dtype.dtype().bytes() as u64);
        if bytes > config.most_bytes() {
            return refuse(format!(
                "{bytes} bytes are more than 2147483648 tiles of {tile} bytes: choose a larger --tile"
            ));
        }
        let tiles = bytes.div_ceil(u64::from(tile)).clamp(1, 1 << 30);
        let full = match form.has_rings() {
            // A CTA of its own for each tile: the hardware deals them out in
            // order and evens out the SMs, which a grid that stays does not.
            false => tiles,
            true => {
                let per_sm = (target.shared_bytes / needed.max(1)).clamp(1, 4);
                u64::from(target.sms * per_sm.min(64 / warps.max(1)).max(1))
            }
        };
        config.ctas = match choice.ctas {
            None => tiles.min(full) as u32,
            Some(0) => return refuse("a grid has at least 1 CTA, not 0".into()),
            Some(n) => n,
        };
        Ok(config)
    }

    fn baseline(p: &Problem, choice: &Choice, target: &Target) -> Result<Config, FamilyError> {
        // Nothing synchronizes.
        let form = choice.form.or(Some(Form::GridStride));
        let choice = Choice {
            form,
            ..choice.clone()
        };
        Self::config(p, &choice, target)
    }

    fn choices(_: &Problem) -> Vec<Choice> {
        let mut all = vec![Choice::default()];
        let forms = [
            (Form::GridStride, None),
            (Form::DoubleBuffer, None),
            (Form::Specialized, Some(2)),
            (Form::Specialized, Some(3)),
            (Form::Specialized, Some(4)),
        ];
        for (form, stages) in forms {
            for warps in [4, 8] {
                for per_thread in [2, 4, 8] {
                    all.push(Choice {
                        form: Some(form),
                        stages,
                        tile: Some(per_thread * warps * 32 * VECTOR),
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
        let kernel = Program::once(key, target, |target| {
            Kernel::build("vector_add", target, |k| roles(k, p.dtype, c))
        })?;
        let step = Step::new(kernel, [c.ctas, 1, 1])
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
        // One rounding: half a unit in the last place of the sum.
        let sum = inputs[0]
            .values()
            .zip(inputs[1].values())
            .map(|(a, b)| a + b);
        vec![sum.map(|c| (c, half_ulp(p.dtype.dtype(), c))).collect()]
    }

    fn cases() -> Vec<Case<Problem, Choice>> {
        let mut cases = Vec::new();
        let tile = 2048; // bytes, of one warp
        for (form, stages) in [
            (Form::GridStride, None),
            (Form::Elements, None),
            (Form::DoubleBuffer, None),
            (Form::Specialized, Some(1)),
            (Form::Specialized, Some(3)),
        ] {
            for dtype in [Float::F32, Float::F16, Float::Bf16] {
                let per_tile = u64::from(tile) / dtype.dtype().bytes() as u64;
                // Tiles of one CTA, whole and ragged.
                let trips = trips(stages.unwrap_or(2)).map(u64::from);
                let whole = trips.iter().map(|t| t * per_tile);
                let ragged = trips.iter().map(|t| t * per_tile + per_tile / 2 + 3);
                let odd = [1, 7, per_tile - 1, per_tile + 1];
                for n in whole.chain(ragged).chain(odd) {
                    for ctas in [1, 3] {
                        cases.push(Case {
                            problem: Problem { n, dtype },
                            choice: Choice {
                                form: Some(form),
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
            dtype: Float::F32,
        };
        vec![("memory", problem)]
    }

    fn class(p: &Problem) -> Value {
        json!({ "dtype": p.dtype })
    }

    fn bucket(p: &Problem) -> Bucket {
        Bucket {
            extents: json!({ "n": doubling(p.n) }),
            rule: "vectors up to the same power of two: length changes how many tiles there are, \
                   and nothing of a tile",
        }
    }

    fn fit(
        p: &Problem,
        choice: &Choice,
        stored: &Choice,
        target: &Target,
    ) -> Result<Config, FamilyError> {
        let has_rings = stored.form.is_some_and(Form::has_rings);
        let again = Choice {
            stages: stored.stages.filter(|_| has_rings),
            ctas: choice.ctas,
            ..stored.clone()
        };
        Self::config(p, &again, target)
    }

    fn ops() -> Vec<Op<Self>> {
        vec![Op {
            signature: Signature {
                name: "add",
                about: Self::ABOUT,
                params: vec![
                    Param::tensor("a", "The first summand: f32, f16 or bf16, without gaps."),
                    Param::tensor("b", "The second, of the same type, shape and strides."),
                ],
                outputs: vec![Output {
                    name: "c",
                    sides: &[Side::All("a")],
                    dtype_of: "a",
                    dtype_by: None,
                }],
                example: EXAMPLE,
            },
            problem: asked,
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

/// The problem of a call: any shape that one walk over all elements serves.
fn asked(call: &Call<'_>) -> Result<(Problem, Choice), FamilyError> {
    let (a, b, c) = (call.tensor("a")?, call.tensor("b")?, &call.outs[0]);
    let Some(dtype) = Float::of(a.dtype) else {
        return call.refuse(format!("a is f32, f16 or bf16, not {}", a.dtype));
    };
    if (a.dtype, &a.shape) != (b.dtype, &b.shape) {
        return call.refuse(format!(
            "a and b are of one type and shape, not {a} and {b}"
        ));
    }
    match &walk(&a.shape, &[&a.strides, &b.strides, &c.strides])[..] {
        [] => {}
        [one] if one.strides == [1; 3] => {}
        _ if a.elements() == 0 => {}
        _ => {
            return call.refuse(format!(
                "a, b and c lie without gaps and with the same strides, not with {:?}, {:?} and {:?}: \
                 make them contiguous",
                a.strides, b.strides, c.strides
            ));
        }
    }
    let choice = Choice {
        form: (!call.on_16_bytes()).then_some(Form::Elements),
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

/// The kernel of an element type and a config.
fn roles(k: Builder, dtype: Float, c: &Config) {
    match dtype {
        Float::F32 => roles_of::<f32>(k, c),
        Float::F16 => roles_of::<f16>(k, c),
        Float::Bf16 => roles_of::<bf16>(k, c),
    }
}

fn roles_of<E: Summand>(k: Builder, c: &Config) {
    match c.form {
        Form::GridStride => grid_stride::<E>(k, c),
        Form::Elements => elements::<E>(k, c),
        Form::DoubleBuffer => double_buffer::<E>(k, c),
        Form::Specialized => specialized::<E>(k, c),
    }
}

/// An element type, and the 32-bit register its sums are made in.
trait Summand: Element<Reg = Self::One> {
    /// One element.
    type One: Scalar;
    /// As many elements as 32 bits hold.
    type Word: Scalar;
    fn one(a: Reg<Self::One>, b: Reg<Self::One>) -> Reg<Self::One>;
    fn word(a: Reg<Self::Word>, b: Reg<Self::Word>) -> Reg<Self::Word>;
}

macro_rules! summand {
    ($($e:ty, $word:ty;)*) => {$(
        impl Summand for $e {
            type One = $e;
            type Word = $word;
            #[track_caller]
            fn one(a: Reg<$e>, b: Reg<$e>) -> Reg<$e> { Add::add(a, b) }
            #[track_caller]
            fn word(a: Reg<$word>, b: Reg<$word>) -> Reg<$word> { Add::add(a, b) }
        }
    )*};
}
summand! {
    f32, f32;
    f16, F16x2;
    bf16, Bf16x2;
}

/// Four words: what one thread adds at a time.
type Vector<E> = [Reg<<E as Summand>::Word>; 4];

fn sum<E: Summand>(a: Vector<E>, b: Vector<E>) -> Vector<E> {
    std::array::from_fn(|i| E::word(a[i], b[i]))
}

/// The parameters, and the work as tiles of whole 16-byte vectors and a tail.
#[derive(Clone, Copy)]
struct Io<E> {
    a: Global<E>,
    b: Global<E>,
    c: Global<E>,
    /// Elements.
    n: Reg<u64>,
    /// Bytes in whole vectors.
    bytes: Reg<u64>,
    tile: u32,
}

impl<E: Summand> Io<E> {
    const SIZE: u32 = E::DTYPE.bytes() as u32;
    /// Elements of one vector.
    const PER_VECTOR: u32 = VECTOR / Self::SIZE;

    fn declare(k: Builder, c: &Config) -> Self {
        let most = c.most_bytes() / u64::from(Self::SIZE);
        let n = k.param::<u64>("n").at_most(most.min(MOST));
        let [a, b, out] = ["a", "b", "c"].map(|name| {
            let elements = k.pointer(name).elements(n);
            match c.form {
                Form::Elements => elements,
                _ => elements.aligned_to(VECTOR.into()),
            }
        });
        Self {
            a,
            b,
            c: out,
            n,
            bytes: (n << Self::SIZE.trailing_zeros()) & !u64::from(VECTOR - 1),
            tile: c.tile,
        }
    }

    /// The tiles of this CTA: for each, its first element and its bytes.
    fn each_tile(self, body: impl FnOnce(Reg<u64>, Reg<u32>)) {
        let shift = self.tile.trailing_zeros();
        let tiles = ((self.bytes + u64::from(self.tile - 1)) >> shift).cast::<u32>();
        range(cta_id(), tiles).by(grid_ctas()).each(|t| {
            let start = t.mul_wide(self.tile);
            let bytes = (self.bytes - start).min(u64::from(self.tile)).cast::<u32>();
            body(start >> Self::SIZE.trailing_zeros(), bytes);
        });
    }

    /// Every thread of the role takes its vectors of a tile: `f` gets the
    /// number of the access and the element, inside the tile.
    fn each_vector(c: &Config, bytes: Reg<u32>, f: impl Fn(u32, Reg<u32>)) {
        let mine = thread_in_role() * Self::PER_VECTOR;
        let stride = c.threads() * Self::PER_VECTOR;
        if_else(
            bytes.eq(c.tile),
            || (0..c.accesses()).for_each(|i| f(i * stride, mine)),
            || {
                for i in 0..c.accesses() {
                    let inside = (mine + i * stride) * Self::SIZE;
                    if_(inside.lt(bytes), || f(i * stride, mine));
                }
            },
        );
    }

    /// The elements after the last whole vector: one thread each, in CTA 0.
    fn tail(self) {
        let whole = self.bytes >> Self::SIZE.trailing_zeros();
        let i = whole + thread_in_role().cast::<u64>();
        if_(i.lt(self.n) & cta_id().eq(0), || {
            self.c.store(i, E::one(self.a.load(i), self.b.load(i)));
        });
    }
}

/// Every thread loads, adds and stores.
fn grid_stride<E: Summand>(k: Builder, c: &Config) {
    let io = Io::<E>::declare(k, c);
    k.role("all").warps(c.warps).body(|| {
        let threads = c.threads();
        io.each_tile(|start, bytes| {
            let (a, b, out) = (io.a.offset(start), io.b.offset(start), io.c.offset(start));
            let mine = thread_in_role() * Io::<E>::PER_VECTOR;
            let stride = threads * Io::<E>::PER_VECTOR;
            let at = |i: u32| mine + i * stride;
            if_else(
                bytes.eq(c.tile),
                || {
                    // All loads of a tile are in flight before the first sum.
                    let load = |from: Global<E>| -> Vec<Vector<E>> {
                        (0..c.accesses()).map(|i| from.load_as(at(i))).collect()
                    };
                    let (x, y) = (load(a), load(b));
                    for (i, (&x, y)) in x.iter().zip(y).enumerate() {
                        out.store_as(at(i as u32), sum::<E>(x, y));
                    }
                },
                || {
                    for i in 0..c.accesses() {
                        if_((at(i) * Io::<E>::SIZE).lt(bytes), || {
                            let s = sum::<E>(a.load_as(at(i)), b.load_as(at(i)));
                            out.store_as(at(i), s);
                        });
                    }
                },
            );
        });
        io.tail();
    });
}

/// Every thread loads, adds and stores single elements.
fn elements<E: Summand>(k: Builder, c: &Config) {
    let io = Io::<E>::declare(k, c);
    k.role("all").warps(c.warps).body(|| {
        io.each_tile(|start, bytes| {
            let (a, b, out) = (io.a.offset(start), io.b.offset(start), io.c.offset(start));
            let per_thread = c.tile / Io::<E>::SIZE / c.threads();
            let at = |j: u32| thread_in_role() + j * c.threads();
            if_else(
                bytes.eq(c.tile),
                || {
                    let load = |from: Global<E>| -> Vec<Reg<E::One>> {
                        (0..per_thread).map(|j| from.load(at(j))).collect()
                    };
                    let (x, y) = (load(a), load(b));
                    for (j, (&x, y)) in x.iter().zip(y).enumerate() {
                        out.store(at(j as u32), E::one(x, y));
                    }
                },
                || {
                    for j in 0..per_thread {
                        if_((at(j) * Io::<E>::SIZE).lt(bytes), || {
                            out.store(at(j), E::one(a.load(at(j)), b.load(at(j))));
                        });
                    }
                },
            );
        });
        io.tail();
    });
}

/// Every warp adds; one thread keeps the copies of the next tile in flight.
fn double_buffer<E: Summand>(k: Builder, c: &Config) {
    let io = Io::<E>::declare(k, c);
    let len = c.tile / Io::<E>::SIZE;
    let tiles = k.ring("tiles", c.stages, |s| {
        (s.vector::<E>(len), s.vector::<E>(len))
    });
    k.role("all").warps(c.warps).body(|| {
        let fetch = |start: Reg<u64>, bytes: Reg<u32>| {
            elect(|| {
                let slot = tiles.acquire();
                slot.load_bytes(slot.0, io.a.address(start), bytes);
                slot.load_bytes(slot.1, io.b.address(start), bytes);
                slot.commit();
            });
        };
        let (last_start, last_bytes) = (Var::new(0u64), Var::new(0u32));
        let fetched = Var::new(false);
        let add = |start: Reg<u64>, bytes: Reg<u32>| {
            let slot = tiles.wait();
            let (a, b, out) = (slot.0, slot.1, io.c.offset(start));
            Io::<E>::each_vector(c, bytes, |i, mine| {
                let (a, b) = (a.slice(0..1, i..len), b.slice(0..1, i..len));
                let s = sum::<E>(a.load_as(0u32, mine), b.load_as(0u32, mine));
                out.store_as(mine + i, s);
            });
            slot.release();
        };
        // One tile ahead: fetch this one, then add the one before it.
        io.each_tile(|start, bytes| {
            fetch(start, bytes);
            if_(fetched.get(), || add(last_start.get(), last_bytes.get()));
            fetched.set(true);
            last_start.set(start);
            last_bytes.set(bytes);
        });
        if_(fetched.get(), || add(last_start.get(), last_bytes.get()));
        io.tail();
    });
}

/// loader → compute → storer.
fn specialized<E: Summand>(k: Builder, c: &Config) {
    let io = Io::<E>::declare(k, c);
    let len = c.tile / Io::<E>::SIZE;
    let inputs = k.ring("in", c.stages, |s| (s.vector::<E>(len), s.vector::<E>(len)));
    let sums = k.ring("out", c.stages, |s| s.vector::<E>(len));

    k.role("compute").warps(c.warps).body(|| {
        io.each_tile(|_, bytes| {
            let (slot, out) = (inputs.wait(), sums.acquire());
            Io::<E>::each_vector(c, bytes, |i, mine| {
                let part = |t: TileRef<E>| t.slice(0..1, i..len);
                let (a, b) = (part(slot.0), part(slot.1));
                let s = sum::<E>(a.load_as(0u32, mine), b.load_as(0u32, mine));
                part(out.tiles()).store_as(0u32, mine, s);
            });
            slot.release();
            out.commit();
        });
        io.tail();
    });

    k.role("load").warps(1).body(|| {
        elect(|| {
            io.each_tile(|start, bytes| {
                let slot = inputs.acquire();
                slot.load_bytes(slot.0, io.a.address(start), bytes);
                slot.load_bytes(slot.1, io.b.address(start), bytes);
                slot.commit();
            });
        });
    });

    k.role("store").warps(1).body(|| {
        elect(|| {
            io.each_tile(|start, bytes| {
                let slot = sums.wait();
                bulk_store(slot.tiles(), io.c.address(start), bytes);
                bulk_commit();
                bulk_wait_read(0);
                slot.release();
            });
        });
    });
}
