//! What a kernel family states of itself, and how tools read it.
//!
//! An author implements [`Family`] on plain structs;
//! [`AnyFamily`](crate::AnyFamily) and [`AnyWork`](crate::AnyWork) are the same
//! without the types, for code that iterates.

use crate::bucket::Bucket;
use crate::error::FamilyError;
use crate::field::{Fields, Word};
use crate::op::{Call, Signature, Value};
use crate::plan::Plan;
use crate::stored::{Asked, Stored};
use crate::tensor::{HostTensor, TensorSpec};
use serde::Serialize;
use std::fmt::Debug;
use warpline_ir::Target;

/// Where a problem is to be solved: default sizes differ by orders of magnitude.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// On the CPU simulator.
    Cpu,
    /// On a GPU.
    Gpu,
}

/// What a problem costs at least.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Cost {
    /// Floating-point operations.
    pub flops: f64,
    /// Bytes of global memory: each input read once, each output written once.
    pub bytes: f64,
}

impl Cost {
    /// Returns the cost of `flops` operations that move every tensor once.
    pub fn once(flops: f64, tensors: &[TensorSpec]) -> Self {
        let bytes: usize = tensors.iter().map(TensorSpec::bytes).sum();
        Self {
            flops,
            bytes: bytes as f64,
        }
    }
}

/// A kernel family.
///
/// Flags, JSON, cache keys and test names follow from the [fields](crate::field) of two structs:
/// `Problem` is class and extents; `Choice` is the part of the config that the caller fixes, every
/// field optional.
pub trait Family: Send + Sync + 'static {
    /// The problem: class (compiled in) and extents (launch parameters).
    type Problem: Fields + PartialEq;
    /// What the caller fixes of the config; the rest is chosen.
    type Choice: Fields + Default + for<'a> From<&'a Self::Config>;
    /// A complete config. As a choice it fixes every field, which is how it is written down.
    type Config: Clone + Debug + PartialEq + Send + Sync;

    /// The family's name: `vector-add`.
    const NAME: &'static str;
    /// What it computes, in one line.
    const ABOUT: &'static str;

    /// The problem to run when none is given; flags replace fields of it.
    fn default_problem(place: Place) -> Self::Problem;
    /// Names the families that requests to this one are meant for, by the value of a field:
    /// `to.family::<Other>("dtype", word)`. Tools offer the fields of both under this family.
    fn redirects(_: &mut impl Redirects) {}
    /// Rejects a problem that the family does not serve; by default none.
    fn check(_: &Self::Problem) -> Result<(), FamilyError> {
        Ok(())
    }
    /// The config for a problem, with the caller's choices in it.
    fn config(
        problem: &Self::Problem,
        choice: &Self::Choice,
        target: &Target,
    ) -> Result<Self::Config, FamilyError>;
    /// The config of the family's baseline schedule, with the caller's choices
    /// in it. The checker proves it for every problem of the family, so a call
    /// takes it where the selected config is undecided.
    ///
    /// By default the selected config: a family of one schedule has no other.
    fn baseline(
        problem: &Self::Problem,
        choice: &Self::Choice,
        target: &Target,
    ) -> Result<Self::Config, FamilyError> {
        Self::config(problem, choice, target)
    }
    /// Choices that may win, best guess first; by default one, which fixes nothing.
    fn choices(_: &Self::Problem) -> Vec<Self::Choice> {
        vec![Self::Choice::default()]
    }
    /// Legal configs, best guess first, at most 48; by default those of the
    /// [`choices`](Self::choices), each once.
    fn candidates(problem: &Self::Problem, target: &Target) -> Vec<Self::Config> {
        let mut all = Vec::new();
        for choice in Self::choices(problem) {
            let config = Self::config(problem, &choice, target).ok();
            all.extend(config.filter(|config| !all.contains(config)));
        }
        all
    }
    /// The kernels that solve the problem.
    fn plan(
        problem: &Self::Problem,
        config: &Self::Config,
        target: &Target,
    ) -> Result<Plan, FamilyError>;
    /// The tensors that go in, in the order of [`Buffer::Input`](crate::Buffer::Input).
    fn inputs(problem: &Self::Problem) -> Vec<TensorSpec>;
    /// The tensors that come out, in the order of [`Buffer::Output`](crate::Buffer::Output).
    fn outputs(problem: &Self::Problem) -> Vec<TensorSpec>;
    /// The inputs with values drawn from a seed; by default from N(0, 1).
    fn draw(problem: &Self::Problem, seed: u64) -> Vec<HostTensor> {
        HostTensor::draw_normal(Self::inputs(problem), seed)
    }
    /// Floating-point operations; by default none are counted.
    fn flops(_: &Self::Problem) -> f64 {
        0.0
    }
    /// The minimum cost; by default [`flops`](Self::flops) operations, and every tensor moved once.
    fn cost(problem: &Self::Problem) -> Cost {
        let tensors = [Self::inputs(problem), Self::outputs(problem)].concat();
        Cost::once(Self::flops(problem), &tensors)
    }
    /// The float64 reference from the rounded inputs: for each output, every value and its error bound.
    fn reference(problem: &Self::Problem, inputs: &[HostTensor]) -> Vec<Vec<(f64, f64)>>;
    /// The test table: small problems that reach every path.
    fn cases() -> Vec<Case<Self::Problem, Self::Choice>>;
    /// The problems it is measured at, each with the suite it belongs to: `("memory", …)`.
    fn bench() -> Vec<(&'static str, Self::Problem)> {
        Vec::new()
    }
    /// The small problem of the same class that a large one repeats, for inputs that take long
    /// to draw and outputs that take long to compare; none where there is no such.
    ///
    /// Each tensor of the large problem is the small one's over and over, cut off
    /// at its end: rows that are computed alone repeat, and weights are the same in both.
    fn period(_: &Self::Problem) -> Option<Self::Problem> {
        None
    }
    /// A small problem of the same class, which a config of this one solves as
    /// well; none where it is small itself.
    fn reduced(problem: &Self::Problem) -> Option<Self::Problem> {
        Self::period(problem)
    }
    /// Which of its ops asks for a problem that is measured.
    fn op(_: &Self::Problem) -> usize {
        0
    }
    /// More of the test table, which the simulator has no time for.
    fn large_cases() -> Vec<Case<Self::Problem, Self::Choice>> {
        Vec::new()
    }
    /// What decides which configs are good beside the extents, as JSON: types,
    /// layouts, alignment. The whole problem, unless [`bucket`](Self::bucket) covers the rest.
    fn class(problem: &Self::Problem) -> serde_json::Value {
        problem.json()
    }
    /// Which problems of the class share a tuned config, and by what rule.
    fn bucket(_: &Self::Problem) -> Bucket {
        Bucket::exact()
    }
    /// The config for this problem that was written down for it or for another problem of its
    /// bucket: the family completes `stored` for this problem's extents, with the caller's choices
    /// in it. What follows from extents, as a grid does, is settled anew.
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
            let text = format!("{} has no candidate {}", Self::NAME, stored.json());
            FamilyError::Config(text)
        })
    }
    /// Does a config give the same bits in every run?
    fn is_deterministic(_: &Self::Config) -> bool {
        true
    }
    /// Seconds that a config takes by the family's model; none where there is
    /// no model, and the order of the candidates ranks them.
    fn estimate(_: &Self::Problem, _: &Self::Config, _: &Target) -> Option<f64> {
        None
    }
    /// Takes over what stored tensors say of the problem, where no option says
    /// it. What both say must agree.
    fn learn(_: &mut Self::Problem, _: Asked<'_>, _: &dyn Stored) -> Result<(), FamilyError> {
        Ok(())
    }
    /// The functions that it serves: in Python, in torch, from Rust. Its
    /// problems are measured as calls of the first.
    fn ops() -> Vec<Op<Self>>
    where
        Self: Sized,
    {
        Vec::new()
    }
}

/// Takes the families that requests to another one are meant for: see [`Family::redirects`].
pub trait Redirects {
    /// Requests that give `field` the value `word` are meant for the family `F`.
    fn family<F: Family>(&mut self, field: &'static str, word: Word);
}

/// The problem that a call asks for, and the config choices that it makes.
pub type AskedOf<F> = Result<(<F as Family>::Problem, <F as Family>::Choice), FamilyError>;

/// An op of a family.
pub struct Op<F: Family> {
    /// What callers see of it.
    pub signature: Signature,
    /// The problem that a call asks, and what the call fixes of the config:
    /// addresses that are not on 16 bytes exclude vectors.
    pub problem: fn(&Call<'_>) -> AskedOf<F>,
    /// The arguments that ask a problem, in the order of the parameters, for
    /// benchmarks; tensors have no address.
    pub args: fn(&F::Problem) -> Vec<Value>,
}

/// A row of a test table.
#[derive(Clone, Debug)]
pub struct Case<P, C> {
    /// The problem.
    pub problem: P,
    /// What is fixed of the config.
    pub choice: C,
}

impl<P, C> Case<P, C> {
    /// Returns a row with a complete config.
    pub fn new<F>(problem: P, config: &F) -> Self
    where
        C: for<'a> From<&'a F>,
    {
        let choice = C::from(config);
        Self { problem, choice }
    }
}

/// The trip counts that reach every state of a ring of `stages` slots: none, one, around one
/// pass over the slots, and more than two passes.
///
/// ```
/// assert_eq!(warpline_family::trips(3), [0, 1, 2, 3, 4, 7]);
/// ```
pub fn trips(stages: u32) -> [u32; 6] {
    let s = stages;
    [0, 1, s.saturating_sub(1), s, s + 1, 2 * s + 1]
}
