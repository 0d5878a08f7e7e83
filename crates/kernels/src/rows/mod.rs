//! Row-wise families: softmax, LayerNorm and RMSNorm over the rows of a matrix.
//!
//! The threads of a row keep it in registers, so each element is loaded once and stored once. An op
//! states its formulas ([`RowOp`]); this module distributes rows over threads, reduces and stores.
//!
//! # Distribution of a row
//!
//! A *unit* is one access of a thread: 16 bytes if all rows start and end on 16 bytes, else one
//! element. A row of `U` units is distributed over `C` CTAs of a cluster (`--cluster`) and `T` threads
//! of each CTA (`--threads`):
//!
//! | level | units of the row | code |
//! |---|---|---|
//! | CTA `r` | a segment of `⌈(U - r) / C⌉` units from `r·⌊U / C⌋ + min(r, U mod C)` on | `partition::RowSegment` |
//! | thread `t` | units `t`, `t + T`, `t + 2T`, … of the segment, so a warp's accesses coalesce | `partition::ThreadCoord` |
//!
//! `T` is a power of two below 32, so that a warp works on `32 / T` rows, or whole warps. A CTA works on
//! `--block` rows at once. Only the last unit of a thread can be past the end of the segment. The thread
//! then loads the last unit of the segment instead, and masks it in reductions and stores.
//!
//! # Online softmax
//!
//! `y_i = exp(x_i - m) / Σ_j exp(x_j - m)` with `m = max_j x_j`. The record of a part `P` of a row is
//! `(m_P, s_P)`: its maximum, and `s_P = Σ_{j∈P} exp(x_j - m_P)`. Two parts merge as
//!
//! ```text
//! m = max(m_A, m_B)
//! s = s_A · exp(m_A - m) + s_B · exp(m_B - m)      because exp(x - m_A) · exp(m_A - m) = exp(x - m)
//! ```
//!
//! A part of one value is `(x, 1)`; merging value after value gives the running maximum and rescaled sum
//! of online softmax. The identity is `(-∞, 0)`. Each warp computes `e_i = exp(x_i - m_W)` with the maximum
//! `m_W` of its own values. Once the row's `(m, s)` is known, `y_i = e_i · (exp(m_W - m) / s)`: one
//! exponential per element, and one factor per thread.
//!
//! `-∞ - (-∞)` would be NaN, so a maximum of `-∞` is replaced by 0 before it is subtracted: a part of
//! only `-∞` has the record `(-∞, 0)`. Special rows follow torch: a row of only `-∞` has `s = 0`, its
//! factor is `0 · ∞ = NaN`, and the row is NaN; `+∞` gives `exp(∞ - ∞) = NaN`; a NaN passes through `exp`
//! into `s`. In each case the factor is NaN, and so is the whole row.
//!
//! # LayerNorm: Chan's merge
//!
//! The record of a part is `(n, μ, M₂, c)`: count, mean of `x - c`, `M₂ = Σ (x - c - μ)²`, and the shift `c`,
//! a value of the row. Values minus `c` are as small as their spread, so a large mean costs no precision.
//! Two parts merge with the distance `δ` of their means:
//!
//! ```text
//! n  = n_A + n_B
//! δ  = (c_B - c_A) + (μ_B - μ_A)
//! μ  = μ_A + δ · n_B / n                           c = c_A
//! M₂ = M₂_A + M₂_B + δ² · n_A · n_B / n
//! ```
//!
//! About the common mean, A contributes `M₂_A + n_A (δ n_B / n)²` and B contributes `M₂_B + n_B (δ n_A / n)²`; the
//! two squares add up to `δ² n_A n_B / n`. The identity is all zeros; the code divides by `max(n, 1)`, so
//! that merging two empty parts gives no NaN. A thread that kept `x - c_W` outputs
//! `(x - c_W - ((c - c_W) + μ)) / √(M₂ / cols + eps)`, times weight plus bias. A NaN or an infinity makes `M₂`
//! NaN, and with it the whole row. RMSNorm merges `Σ x²` by addition; its identity is 0.
//!
//! # The path of a record
//!
//! | from | to | how | code |
//! |---|---|---|---|
//! | values of a thread | lanes of a warp | tree in registers, then `shfl.bfly` | `RowOp::stats`, [`RowValues`], [`RowLanes`] |
//! | warps of a CTA | all warps of the row | record in shared memory, mbarrier; each warp merges all records | `reduce::RowReduction` |
//! | CTAs of a cluster | all CTAs | `st.async` of each record to every CTA; the mbarrier counts bytes | the same |
//! | two-pass rows | the threads of one CTA | each thread merges the records of its units, then as above | `two_pass` |
//!
//! | formula | code |
//! |---|---|
//! | softmax | `softmax.rs`: `merge`, `rescale`, `finite`, `factors` |
//! | LayerNorm | `layer_norm.rs`: `stats`, `merge`, `factors` |
//! | lanes whose merge order differs | `reduce::across_lanes`: all take the result of the first lane |
//!
//! # Modules
//!
//! | module | contents |
//! |---|---|
//! | [`op`] | the description of an op |
//! | `call` | the op's signature; the problem of a call |
//! | `problem`, `config` | the matrix; schedule and tuning parameters |
//! | `resources`, `legal`, `heuristic` | register and shared-memory needs; rejected configs; selection |
//! | `partition` | launch parameters; the units of a thread |
//! | `element`, `packed` | units in memory and as fp32 registers |
//! | `reduce` | reductions over lanes, warps and CTAs |
//! | `context` | steps of the schedules that keep a row in registers |
//! | `two_pass` | the schedule for rows that no cluster can hold |
//! | `schedules` | parameters, rings and roles of each schedule |

mod call;
mod config;
mod context;
mod element;
mod heuristic;
mod legal;
pub mod op;
mod packed;
mod partition;
mod problem;
mod reduce;
mod resources;
mod schedules;
mod table;
mod two_pass;

pub use config::{Choice, Config, Schedule, WeightStorage};
pub use op::{OpParams, RowLanes, RowOp, RowRecord, RowValues};
pub use problem::{Matrix, Problem};

use serde_json::{Value, json};
use std::marker::PhantomData;
use warpline_family::Op;
use warpline_family::bucket::{Bucket, power_of_two_bucket};
use warpline_family::draw;
use warpline_family::error::FamilyError;
use warpline_family::family::{Cost, DeviceKind, Family, TestCase};
use warpline_family::float::FloatType;
use warpline_family::numbers::{Random, half_ulp};
use warpline_family::plan::{Buffer, LaunchStep, Plan};
use warpline_family::program::Program;
use warpline_family::tensor::{HostTensor, TensorSpec};
use warpline_ir::{Kernel, Target};

/// The family of a row-wise op.
#[derive(Clone, Copy, Debug)]
pub struct RowFamily<K>(PhantomData<K>);

impl<K: RowOp> RowFamily<K> {
    /// The family as a value.
    pub const NEW: Self = Self(PhantomData);
}

impl<K: RowOp> Family for RowFamily<K> {
    type Problem = Problem<K::Options>;
    type Choice = Choice;
    type Config = Config;

    const NAME: &'static str = K::NAME;
    const ABOUT: &'static str = K::ABOUT;

    fn default_problem(device: DeviceKind) -> Self::Problem {
        let (rows, dtype) = match device {
            DeviceKind::Cpu => (64, FloatType::F32),
            DeviceKind::Gpu => (16384, FloatType::Bf16),
        };
        Problem::dense(rows, 4096, dtype, K::Options::default())
    }

    fn check(p: &Self::Problem) -> Result<(), FamilyError> {
        p.shape()?;
        K::check(&p.options)
    }

    fn draw_problem(random: &mut Random) -> Self::Problem {
        let mut options = K::Options::default();
        draw::fields(&mut options, random);
        let matrix = Matrix::draw(random);
        Problem { matrix, options }
    }

    fn config(p: &Self::Problem, choice: &Choice, target: &Target) -> Result<Config, FamilyError> {
        heuristic::select::<K>(p, choice, target)
    }

    fn candidates(p: &Self::Problem, target: &Target) -> Vec<Config> {
        heuristic::candidates::<K>(p, target)
    }

    fn fixed_choice(
        p: &Self::Problem,
        choice: &Choice,
        target: &Target,
    ) -> Result<Choice, FamilyError> {
        heuristic::fixed_choice::<K>(p, choice, target)
    }

    fn baseline(
        p: &Self::Problem,
        choice: &Choice,
        target: &Target,
    ) -> Result<Config, FamilyError> {
        // Two-pass needs no ring, no queue and no cluster, and takes rows of any length.
        let choice = Choice {
            schedule: choice.schedule.or(Some(Schedule::TwoPass)),
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
        let kernel = Program::cached(key, target, |target| {
            let name = K::NAME.replace('-', "_");
            Kernel::build(&name, target, |k| {
                schedules::roles::<K>(k, p.matrix.dtype, &p.options, c)
            })
        })?;
        // `shape` has checked that extents and strides are below 2³².
        let mut step = LaunchStep::new(kernel, [c.ctas, 1, 1])
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
        if c.schedule.has_queue() {
            step = step.pointer("queue", Buffer::Workspace);
        }
        // The queue has two 32-bit words.
        let workspace = if c.schedule.has_queue() { 8 } else { 0 };
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
            // One ulp of the output, plus the rounding of the fp32 computation.
            let bound = |(v, scale): (f64, f64)| match v.is_nan() {
                true => (v, 0.0),
                false => (v, 2.0 * half_ulp(dtype, v) + 1e-6 * scale),
            };
            y.extend(values.into_iter().map(bound));
            // The kernel must not write the padding between rows.
            y.extend((cols..shape.y_stride as usize).map(|_| warpline_family::UNTOUCHED));
        }
        vec![y]
    }

    fn cases() -> Vec<TestCase<Self::Problem, Choice>> {
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
        for dtype in [FloatType::Bf16, FloatType::F32] {
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
            "aligned": p.shape().is_ok_and(|shape| shape.is_aligned()),
        })
    }

    fn bucket(p: &Self::Problem) -> Bucket {
        Bucket {
            extents: json!({ "cols": p.matrix.cols, "rows": power_of_two_bucket(p.matrix.rows) }),
            rule: "the same row length, and row counts up to the same power of two: the length \
                   decides how a row is distributed over threads, the count only how often",
        }
    }

    fn fit(
        p: &Self::Problem,
        choice: &Choice,
        stored: &Choice,
        target: &Target,
    ) -> Result<Config, FamilyError> {
        // The grid follows from the extents, so a stored grid is ignored.
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
            signature: call::signature::<K>(),
            problem: call::problem_of_call::<K>,
            args: call::args::<K>,
        }]
    }

    fn period(p: &Self::Problem) -> Option<Self::Problem> {
        // Rows are independent: a few rows, repeated, give the same results.
        let rows = ((1 << 21) / p.matrix.cols.max(1)).clamp(1, p.matrix.rows.max(1));
        let mut problem = p.clone();
        problem.matrix.rows = rows;
        Some(problem)
    }
}

/// Returns the specs of the matrix and of the per-column vectors.
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

/// Rejects an `eps` that is negative or not finite in f32.
pub(crate) fn check_eps(eps: f64) -> Result<(), FamilyError> {
    if (eps as f32).is_finite() && eps >= 0.0 {
        return Ok(());
    }
    Err(FamilyError::Problem(format!(
        "eps is {eps:?}, but must be finite in f32 and at least 0"
    )))
}
