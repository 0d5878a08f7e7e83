//! `C = gate(A · B₁ᵀ) ∘ (A · B₂ᵀ)`: the first half of a gated layer, SwiGLU and its kin.
//!
//! A product of which every tile has the sums of two factors, so that A is
//! brought once for both: forms, tiles and the chooser are those of
//! [`gemm`](crate::gemm).
//!
//! | where | what |
//! |---|---|
//! | [`problem`] | what is asked: extents, types, how the weights lie |
//! | `call` | the ops: from a call to a problem |
//! | `table` | the test table |

mod call;
pub mod problem;
mod table;

pub use problem::Problem;

use crate::error::FamilyError;
use crate::family::{Case, Cost, Family, Period, Place};
use crate::gemm::{Choice, Config, Factor, Gemm};
use crate::op::Op;
use crate::plan::Plan;
use crate::tensor::{HostTensor, TensorSpec};
use crate::tunable::Bucket;
use warpline_ir::Target;

/// The family.
#[derive(Clone, Copy, Debug, Default)]
pub struct DualGemm;

/// The shapes that it is measured at.
const SHAPES: [[u32; 3]; 5] = [
    [256, 4096, 7168],
    [512, 3072, 7168],
    [2048, 8192, 4096],
    [4096, 14336, 4096],
    [8192, 28672, 8192],
];

impl Family for DualGemm {
    type Problem = Problem;
    type Choice = Choice;
    type Config = Config;

    const NAME: &'static str = "dual-gemm";
    const ABOUT: &'static str = "C = gate(A · B1ᵀ) ∘ (A · B2ᵀ), the first half of a gated layer";

    fn default_problem(place: Place) -> Problem {
        match place {
            Place::Cpu => Problem::new(256, 256, 512),
            Place::Gpu => Problem::new(4096, 14336, 4096),
        }
    }

    fn check(p: &Problem) -> Result<(), FamilyError> {
        Gemm::check(&p.product())
    }

    fn config(p: &Problem, choice: &Choice, target: &Target) -> Result<Config, FamilyError> {
        Gemm::config(&p.product(), choice, target)
    }

    fn candidates(p: &Problem, target: &Target) -> Vec<Config> {
        Gemm::candidates(&p.product(), target)
    }

    fn plan(p: &Problem, c: &Config, target: &Target) -> Result<Plan, FamilyError> {
        Gemm::plan(&p.product(), c, target)
    }

    fn class(p: &Problem) -> serde_json::Value {
        Gemm::class(&p.product())
    }

    fn bucket(p: &Problem) -> Bucket {
        Gemm::bucket(&p.product())
    }

    fn fit(
        p: &Problem,
        choice: &Choice,
        config: &Config,
        target: &Target,
    ) -> Result<Config, FamilyError> {
        Gemm::fit(&p.product(), choice, config, target)
    }

    fn estimate(p: &Problem, c: &Config, target: &Target) -> Option<f64> {
        Gemm::estimate(&p.product(), c, target)
    }

    fn cost(p: &Problem) -> Cost {
        Gemm::cost(&p.product())
    }

    fn inputs(p: &Problem, seed: u64) -> Vec<HostTensor> {
        Gemm::inputs(&p.product(), seed)
    }

    fn outputs(p: &Problem) -> Vec<TensorSpec> {
        Gemm::outputs(&p.product())
    }

    fn reference(p: &Problem, inputs: &[HostTensor]) -> Vec<Vec<(f64, f64)>> {
        Gemm::reference(&p.product(), inputs)
    }

    fn cases() -> Vec<Case<Problem, Choice>> {
        table::cases()
    }

    fn large_cases() -> Vec<Case<Problem, Choice>> {
        table::large()
    }

    fn bench() -> Vec<(&'static str, Problem)> {
        let eight = Problem {
            dtype: Factor::E4m3,
            scales: true,
            ..Problem::new(4096, 14336, 4096)
        };
        let wide = SHAPES.map(|[m, n, k]| ("swiglu", Problem::new(m, n, k)));
        wide.into_iter().chain([("swiglu", eight)]).collect()
    }

    fn ops() -> Vec<Op<Self>> {
        vec![call::swiglu(), call::dual_gemm()]
    }

    fn reduced(p: &Problem) -> Option<Problem> {
        Gemm::reduced(&p.product()).map(|small| p.of(small))
    }

    fn period(p: &Problem) -> Option<Period<Problem>> {
        let Period { problem, inputs } = Gemm::period(&p.product())?;
        let problem = p.of(problem);
        Some(Period { problem, inputs })
    }
}
