//! The [`Family`] trait, which the author of a kernel family implements.
//!
//! [`AnyFamily`](crate::AnyFamily) and [`AnyWorkload`](crate::AnyWorkload) are its type-erased
//! counterparts, for code that iterates over families.

use crate::bucket::Bucket;
use crate::draw;
use crate::error::FamilyError;
use crate::field::{Fields, Keyword};
use crate::numbers::Random;
use crate::op::{ArgValue, OpArgs, Signature};
use crate::plan::Plan;
use crate::stored::{IsOptionSet, StoredTensors};
use crate::tensor::{HostTensor, TensorSpec};
use serde::Serialize;
use std::fmt::Debug;
use warpline_ir::Target;

/// The kind of device that runs a problem. Default sizes differ by orders of magnitude.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeviceKind {
    /// The CPU executor.
    Cpu,
    /// A GPU.
    Gpu,
}

/// The minimum cost of a problem.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Cost {
    /// Floating-point operations.
    pub flops: f64,
    /// Bytes of global memory: each input read once, each output written once.
    pub bytes: f64,
}

impl Cost {
    /// Returns the cost of `flops` operations and of moving every tensor once.
    pub fn once(flops: f64, tensors: &[TensorSpec]) -> Self {
        let bytes: usize = tensors.iter().map(TensorSpec::bytes).sum();
        Self {
            flops,
            bytes: bytes as f64,
        }
    }
}

/// A kernel family: all kernels of one computation.
///
/// Flags, JSON, cache keys and test names are derived from the [fields](crate::field) of two
/// structs. `Problem` holds the class and the extents. `Choice` holds the part of the config that
/// the caller fixes; all its fields are optional.
pub trait Family: Send + Sync + 'static {
    /// The problem: class (compiled in) and extents (launch parameters).
    type Problem: Fields + PartialEq;
    /// The part of the config that the caller fixes; the heuristic selects the rest.
    type Choice: Fields + Default + for<'a> From<&'a Self::Config>;
    /// A complete config. It is stored as a `Choice` that fixes every field.
    type Config: Clone + Debug + PartialEq + Send + Sync;

    /// The family's name: `vector-add`.
    const NAME: &'static str;
    /// A one-line description of the computation.
    const ABOUT: &'static str;

    /// Returns the default problem; the caller's flags override its fields.
    fn default_problem(device: DeviceKind) -> Self::Problem;
    /// Redirects requests with a given field value to another family:
    /// `to.family::<Other>("dtype", keyword)`. Tools then offer the fields of both families under
    /// this family's name.
    fn redirects(_to: &mut impl Redirects) {}
    /// Rejects a problem that the family does not support. The default accepts every problem.
    fn check(_: &Self::Problem) -> Result<(), FamilyError> {
        Ok(())
    }
    /// Draws a valid problem: any that the documentation of its fields allows, also with extreme
    /// extents. `warpline check FAMILY --fuzz` reports a drawn problem that is rejected.
    ///
    /// The default draws the declared fields ([`draw::problem`]) until [`check`](Self::check) accepts
    /// the problem. Implement it if rules relate fields, or if fields have no default.
    fn draw_problem(random: &mut Random) -> Self::Problem {
        draw::problem(Self::default_problem(draw::DEVICE), Self::check, random)
    }
    /// Returns the config that the heuristic selects, with the caller's choices applied.
    fn config(
        problem: &Self::Problem,
        choice: &Self::Choice,
        target: &Target,
    ) -> Result<Self::Config, FamilyError>;
    /// Returns the choice with every field fixed on which the bits of a row may depend, if the caller
    /// asks for batch invariance: the result of a row is then the same, bit by bit, whatever the other
    /// rows are, and however many. Tuned configs must agree with it. The default changes nothing, which
    /// suits a family without such an option.
    fn fixed_choice(
        _: &Self::Problem,
        choice: &Self::Choice,
        _: &Target,
    ) -> Result<Self::Choice, FamilyError> {
        Ok(choice.clone())
    }
    /// Returns the config of the baseline schedule, with the caller's choices applied.
    ///
    /// The checker must prove the baseline for every problem of the family. The runtime launches
    /// the baseline when the checker cannot decide the selected config. The default is the selected
    /// config, which suits a family with one schedule.
    fn baseline(
        problem: &Self::Problem,
        choice: &Self::Choice,
        target: &Target,
    ) -> Result<Self::Config, FamilyError> {
        Self::config(problem, choice, target)
    }
    /// Returns the choices that autotuning completes to candidates, most promising first. The
    /// default is one choice that fixes nothing.
    fn choices(_: &Self::Problem) -> Vec<Self::Choice> {
        vec![Self::Choice::default()]
    }
    /// Returns the candidates for autotuning: at most 48 legal configs, most promising first. The
    /// default completes the [`choices`](Self::choices) and drops duplicates.
    fn candidates(problem: &Self::Problem, target: &Target) -> Vec<Self::Config> {
        let mut all = Vec::new();
        for choice in Self::choices(problem) {
            let config = Self::config(problem, &choice, target).ok();
            all.extend(config.filter(|config| !all.contains(config)));
        }
        all
    }
    /// Returns the launches that solve the problem.
    fn plan(
        problem: &Self::Problem,
        config: &Self::Config,
        target: &Target,
    ) -> Result<Plan, FamilyError>;
    /// Returns the input tensors, in the order of [`Buffer::Input`](crate::Buffer::Input).
    fn inputs(problem: &Self::Problem) -> Vec<TensorSpec>;
    /// Returns the output tensors, in the order of [`Buffer::Output`](crate::Buffer::Output).
    fn outputs(problem: &Self::Problem) -> Vec<TensorSpec>;
    /// Draws random inputs from a seed. The default draws from N(0, 1).
    fn draw(problem: &Self::Problem, seed: u64) -> Vec<HostTensor> {
        HostTensor::draw_normal(Self::inputs(problem), seed)
    }
    /// Rejects input tensors with wrong values, such as an index out of range. It is called for tensors
    /// in host memory; a kernel must end, whatever the values are. The default accepts all values.
    fn check_values(_: &Self::Problem, _inputs: &[HostTensor]) -> Result<(), FamilyError> {
        Ok(())
    }
    /// Returns the number of floating-point operations. The default is 0.
    fn flops(_: &Self::Problem) -> f64 {
        0.0
    }
    /// Returns the minimum cost. The default counts [`flops`](Self::flops) operations, and the bytes
    /// of every input and output tensor once.
    fn cost(problem: &Self::Problem) -> Cost {
        let tensors = [Self::inputs(problem), Self::outputs(problem)].concat();
        Cost::once(Self::flops(problem), &tensors)
    }
    /// Computes the float64 reference from the rounded inputs: the value and the tolerance of every
    /// element of every output.
    fn reference(problem: &Self::Problem, inputs: &[HostTensor]) -> Vec<Vec<(f64, f64)>>;
    /// Returns the test table: small problems that cover every code path.
    fn cases() -> Vec<TestCase<Self::Problem, Self::Choice>>;
    /// Returns the benchmark problems, each with its suite: `("memory", …)`.
    fn bench() -> Vec<(&'static str, Self::Problem)> {
        Vec::new()
    }
    /// Returns the problems of surveys, each with its survey: `("layers", …)`. A survey is a suite of many
    /// shapes, which is measured only if it is named; its programs are not recorded.
    fn surveys() -> Vec<(&'static str, Self::Problem)> {
        Vec::new()
    }
    /// Returns a small problem of the same class whose tensors, repeated, form the tensors of
    /// `problem`; `None` if there is none. Benchmarks use it because drawing large inputs and
    /// comparing large outputs takes long.
    ///
    /// Each tensor of `problem` repeats the small problem's tensor of the same name; the last
    /// repetition may be incomplete. This holds if rows are independent and both problems use the
    /// same weights.
    fn period(_: &Self::Problem) -> Option<Self::Problem> {
        None
    }
    /// Returns a small problem of the same class, and a config with the same programs that solves it;
    /// `None` if `problem` is already small or the family defines none. The default is
    /// [`period`](Self::period) with the same config.
    fn reduced(
        problem: &Self::Problem,
        config: &Self::Config,
    ) -> Option<(Self::Problem, Self::Config)> {
        Some((Self::period(problem)?, config.clone()))
    }
    /// Returns the index of the op that benchmarks call for this problem.
    fn bench_op(_: &Self::Problem) -> usize {
        0
    }
    /// Returns the test cases that are too large for the CPU executor.
    fn large_cases() -> Vec<TestCase<Self::Problem, Self::Choice>> {
        Vec::new()
    }
    /// Returns the class as JSON: types, layouts and alignment. A tuned config is valid for one
    /// class. The default is the whole problem; narrow it if [`bucket`](Self::bucket) covers the
    /// extents.
    fn class(problem: &Self::Problem) -> serde_json::Value {
        problem.json()
    }
    /// Returns the bucket of the problem: the extents that share a tuned config.
    fn bucket(_: &Self::Problem) -> Bucket {
        Bucket::exact()
    }
    /// Adapts a stored config of this bucket to this problem, with the caller's choices applied.
    /// Parameters that depend on the extents, such as the grid, are computed again. The default
    /// adapts nothing: it accepts a stored config that equals a candidate or the heuristic's config.
    fn fit(
        problem: &Self::Problem,
        choice: &Self::Choice,
        stored: &Self::Choice,
        target: &Target,
    ) -> Result<Self::Config, FamilyError> {
        let is_stored = |config: &Self::Config| Self::Choice::from(config).json() == stored.json();
        let mut known = Self::candidates(problem, target);
        known.extend(Self::config(problem, choice, target).ok());
        known.into_iter().find(is_stored).ok_or_else(|| {
            FamilyError::Config(format!(
                "{} cannot use the stored config {}: it equals no candidate for this problem\nhelp: tune this problem again",
                Self::NAME,
                stored.json()
            ))
        })
    }
    /// Returns whether a config produces the same bits in every run.
    fn is_deterministic(_: &Self::Config) -> bool {
        true
    }
    /// Estimates the run time of a config in seconds with the family's model; `None` without a
    /// model. Candidates without an estimate keep their order.
    fn estimate(_: &Self::Problem, _: &Self::Config, _: &Target) -> Option<f64> {
        None
    }
    /// Sets the fields of the problem that stored tensors determine, such as extents. Rejects
    /// tensors that contradict an option.
    fn complete_from_tensors(
        _: &mut Self::Problem,
        _: IsOptionSet<'_>,
        _: &dyn StoredTensors,
    ) -> Result<(), FamilyError> {
        Ok(())
    }
    /// Returns the ops that the family serves in Python, torch and Rust. Benchmarks call the op
    /// that [`bench_op`](Self::bench_op) names.
    fn ops() -> Vec<Op<Self>>
    where
        Self: Sized,
    {
        Vec::new()
    }
}

/// Collects the redirects of a family: see [`Family::redirects`].
pub trait Redirects {
    /// Redirects requests that set `field` to `keyword` to the family `F`.
    fn family<F: Family>(&mut self, field: &'static str, keyword: Keyword);
}

/// The problem of an op call and the config choices that the call fixes.
pub type ProblemAndChoice<F> = Result<(<F as Family>::Problem, <F as Family>::Choice), FamilyError>;

/// An op of a family.
pub struct Op<F: Family> {
    /// The name, parameters and outputs.
    pub signature: Signature,
    /// Converts a call to a problem and a choice. The call may fix config fields: addresses that
    /// are not 16-byte aligned exclude vector accesses.
    pub problem: fn(&OpArgs<'_>) -> ProblemAndChoice<F>,
    /// Returns the arguments that request a problem, in the order of the parameters, for
    /// benchmarks. Tensors have no address.
    pub args: fn(&F::Problem) -> Vec<ArgValue>,
}

/// A row of a test table.
#[derive(Clone, Debug)]
pub struct TestCase<P, C> {
    /// The problem.
    pub problem: P,
    /// The fixed part of the config.
    pub choice: C,
}

impl<P, C> TestCase<P, C> {
    /// Returns a test case with a complete config.
    pub fn new<Config>(problem: P, config: &Config) -> Self
    where
        C: for<'a> From<&'a Config>,
    {
        let choice = C::from(config);
        Self { problem, choice }
    }
}

/// Returns trip counts that reach every state of a ring with `stages` stages: none, one, around
/// one pass over the stages, and more than two passes.
///
/// ```
/// assert_eq!(warpline_family::trip_counts(3), [0, 1, 2, 3, 4, 7]);
/// ```
pub fn trip_counts(stages: u32) -> [u32; 6] {
    let s = stages;
    [0, 1, s.saturating_sub(1), s, s + 1, 2 * s + 1]
}
