//! Families over the rows of a matrix: softmax, layer-norm, rms-norm.
//!
//! A row is held in registers by the threads of a sub-warp, of some warps, or
//! of a cluster of CTAs, so that each element is read once and written once;
//! their records meet in shared memory. An op states what it measures and
//! writes ([`RowOp`]); all else is here.
//!
//! | where | what |
//! |---|---|
//! | [`op`] | the description of an op |
//! | `call` | the op's signature; the problem of a call |
//! | `problem`, `config` | what is asked; how rows are dealt to threads |
//! | `room`, `legal`, `heuristic` | sizes of a config; configs that are rejected; the selection |
//! | `seat` | which units of which row a thread holds |
//! | `cell`, `raw` | units in memory and as fp32 registers |
//! | `meet` | records of lanes, warps and CTAs come together |
//! | `context` | the steps of the forms that hold a row |
//! | `sweeps` | the form for rows that no cluster holds |
//! | `forms` | the kernel of a config: parameters, rings, roles |

mod call;
mod cell;
mod config;
mod context;
mod forms;
mod heuristic;
mod legal;
mod meet;
pub mod op;
mod problem;
mod raw;
mod room;
mod seat;
mod sweeps;
mod table;

pub use config::{Choice, Config, Form, Weights};
pub use op::{Given, Held, Lanes, RowOp, Stat};
pub use problem::{Matrix, Problem};

use serde_json::{Value, json};
use std::marker::PhantomData;
use warpline_family::Op;
use warpline_family::bucket::{Bucket, doubling};
use warpline_family::error::FamilyError;
use warpline_family::family::{Case, Cost, Family, Place};
use warpline_family::float::Float;
use warpline_family::numbers::half_ulp;
use warpline_family::plan::{Buffer, Plan, Step};
use warpline_family::program::Program;
use warpline_family::tensor::{HostTensor, TensorSpec};
use warpline_ir::{Kernel, Target};

/// The family of an operation on rows.
#[derive(Clone, Copy, Debug)]
pub struct Rows<K>(PhantomData<K>);

impl<K: RowOp> Rows<K> {
    /// The family as a value.
    pub const NEW: Self = Self(PhantomData);
}

impl<K: RowOp> Family for Rows<K> {
    type Problem = Problem<K::Options>;
    type Choice = Choice;
    type Config = Config;

    const NAME: &'static str = K::NAME;
    const ABOUT: &'static str = K::ABOUT;

    fn default_problem(place: Place) -> Self::Problem {
        let (rows, dtype) = match place {
            Place::Cpu => (64, Float::F32),
            Place::Gpu => (16384, Float::Bf16),
        };
        Problem::dense(rows, 4096, dtype, K::Options::default())
    }

    fn check(p: &Self::Problem) -> Result<(), FamilyError> {
        p.shape()?;
        K::check(&p.options)
    }

    fn config(p: &Self::Problem, choice: &Choice, target: &Target) -> Result<Config, FamilyError> {
        heuristic::select::<K>(p, choice, target)
    }

    fn candidates(p: &Self::Problem, target: &Target) -> Vec<Config> {
        heuristic::candidates::<K>(p, target)
    }

    fn baseline(
        p: &Self::Problem,
        choice: &Choice,
        target: &Target,
    ) -> Result<Config, FamilyError> {
        // Rows of any length, by single CTAs: no ring, no queue, no cluster.
        let choice = Choice {
            form: choice.form.or(Some(Form::TwoSweeps)),
            ..choice.clone()
        };
        Self::config(p, &choice, target)
    }

    fn plan(p: &Self::Problem, c: &Config, target: &Target) -> Result<Plan, FamilyError> {
        let shape = p.shape()?;
        let compiled_in = Config { ctas: 0, ..*c };
        let vectors = K::vectors(&p.options);
        let key = format!(
            "{} {:?} {vectors:?} {compiled_in:?}",
            K::NAME,
            p.matrix.dtype
        );
        let kernel = Program::once(key, target, |target| {
            let name = K::NAME.replace('-', "_");
            Kernel::build(&name, target, |k| {
                forms::roles::<K>(k, p.matrix.dtype, &p.options, c)
            })
        })?;
        // Sides and strides are less than 2³², as `shape` has checked.
        let mut step = Step::new(kernel, [c.ctas, 1, 1])
            .scalar("rows", shape.rows as u32)
            .scalar("cols", shape.cols as u32)
            .scalar("x_stride", shape.x_stride as u32)
            .scalar("y_stride", shape.y_stride as u32)
            .pointer("x", Buffer::Input(0))
            .pointer("y", Buffer::Output(0));
        for (i, name) in (1..).zip(vectors) {
            step = step.pointer(name, Buffer::Input(i));
        }
        for (name, x) in K::scalars(&p.options) {
            step = step.scalar(name, x);
        }
        if c.form.has_queue() {
            step = step.pointer("queue", Buffer::Workspace);
        }
        // The queue's two words.
        let workspace = if c.form.has_queue() { 8 } else { 0 };
        Plan::new(vec![step], workspace)
    }

    fn cost(p: &Self::Problem) -> Cost {
        let elements = p.matrix.rows as f64 * p.matrix.cols as f64;
        let vectors = K::vectors(&p.options).len() as f64 * p.matrix.cols as f64;
        Cost {
            flops: K::FLOPS * elements,
            bytes: (2.0 * elements + vectors) * p.matrix.dtype.dtype().bytes() as f64,
        }
    }

    fn inputs(p: &Self::Problem) -> Vec<TensorSpec> {
        input_specs::<K>(p)
    }

    fn outputs(p: &Self::Problem) -> Vec<TensorSpec> {
        let outputs = p.shape().map(|s| vec![s.matrix("y", s.y_stride)]);
        outputs.unwrap_or_default()
    }

    fn reference(p: &Self::Problem, inputs: &[HostTensor]) -> Vec<Vec<(f64, f64)>> {
        let Ok(shape) = p.shape() else {
            return Vec::new();
        };
        let (cols, dtype) = (shape.cols as usize, p.matrix.dtype.dtype());
        let vectors: Vec<Vec<f64>> = inputs[1..].iter().map(|v| v.values().collect()).collect();
        let x: Vec<f64> = inputs[0].values().collect();
        let mut y = Vec::with_capacity((shape.rows * shape.y_stride) as usize);
        for row in x.chunks(shape.x_stride as usize) {
            let values = K::reference(&p.options, &row[..cols], &vectors);
            // One ulp of the output, and what fp32 loses on the way.
            let bound = |(v, scale): (f64, f64)| match v.is_nan() {
                true => (v, 0.0),
                false => (v, 2.0 * half_ulp(dtype, v) + 1e-6 * scale),
            };
            y.extend(values.into_iter().map(bound));
            // What lies between the rows stays as it was.
            y.extend((cols..shape.y_stride as usize).map(|_| warpline_family::UNTOUCHED));
        }
        vec![y]
    }

    fn cases() -> Vec<Case<Self::Problem, Choice>> {
        table::cases::<K>()
    }

    fn bench() -> Vec<(&'static str, Self::Problem)> {
        let shapes = [
            (32768, 1024),
            (32768, 4096),
            (16384, 8192),
            (8192, 32768),
            (4096, 131072),
        ];
        let mut problems = Vec::new();
        for dtype in [Float::Bf16, Float::F32] {
            for (rows, cols) in shapes {
                let problem = Problem::dense(rows, cols, dtype, K::Options::default());
                problems.push(("memory", problem));
            }
        }
        problems
    }

    fn class(p: &Self::Problem) -> Value {
        json!({
            "dtype": p.matrix.dtype,
            "vectors": K::vectors(&p.options),
            "aligned": p.shape().is_ok_and(|shape| shape.aligned()),
        })
    }

    fn bucket(p: &Self::Problem) -> Bucket {
        Bucket {
            extents: json!({ "cols": p.matrix.cols, "rows": doubling(p.matrix.rows) }),
            rule: "rows of exactly this length, whose number is up to the same power of two: length \
                   decides how a row is dealt to threads, the number only how often that is done",
        }
    }

    fn fit(
        p: &Self::Problem,
        choice: &Choice,
        stored: &Choice,
        target: &Target,
    ) -> Result<Config, FamilyError> {
        // The grid follows from the extents.
        let has_ring = stored.form.is_some_and(Form::has_ring);
        let again = Choice {
            stages: stored.stages.filter(|_| has_ring),
            ctas: choice.ctas,
            ..stored.clone()
        };
        Self::config(p, &again, target)
    }

    fn ops() -> Vec<Op<Self>> {
        vec![Op {
            signature: call::signature::<K>(),
            problem: call::asked::<K>,
            args: call::args::<K>,
        }]
    }

    fn period(p: &Self::Problem) -> Option<Self::Problem> {
        // Rows are computed alone: a few of them, over and over.
        let few = ((1 << 21) / p.matrix.cols.max(1)).clamp(1, p.matrix.rows.max(1));
        let mut problem = p.clone();
        problem.matrix.rows = few;
        Some(problem)
    }
}

/// The matrix, and the vectors that every row meets.
fn input_specs<K: RowOp>(p: &Problem<K::Options>) -> Vec<TensorSpec> {
    let Ok(shape) = p.shape() else {
        return Vec::new();
    };
    let vector = |name: &&'static str| TensorSpec {
        name,
        dtype: p.matrix.dtype.dtype(),
        shape: vec![shape.cols as usize],
    };
    let mut specs = vec![shape.matrix("x", shape.x_stride)];
    specs.extend(K::vectors(&p.options).iter().map(vector));
    specs
}

/// Refuses an eps that would not keep a root from zero.
pub(crate) fn positive_eps(eps: f64) -> Result<(), FamilyError> {
    if (eps as f32).is_finite() && eps >= 0.0 {
        return Ok(());
    }
    Err(FamilyError::Problem(format!(
        "eps is a number of f32 that is not negative, not {eps:?}"
    )))
}
