//! `C = gate(A · B₁ᵀ) ∘ (A · B₂ᵀ)`: the first half of a gated layer, SwiGLU and its kin.
//!
//! A GEMM with a gated mainloop and a gate epilogue, so that A is loaded once for both weights:
//! schedules, tiles and the heuristic are those of [`gemm`](crate::gemm). Requests for weights in
//! NVFP4 are read by [`nvfp4_dual_gemm`](crate::nvfp4_dual_gemm).
//!
//! | where | what |
//! |---|---|
//! | [`problem`] | extents, types, how the weights lie; the same as a problem of `gemm` |
//! | `call` | the ops: from a call to a problem |
//! | `table` | the test table |

mod call;
pub mod problem;
mod table;

pub use problem::Problem;

use crate::gemm::{Choice, Config, Factor, Gemm};
use crate::nvfp4_dual_gemm::Nvfp4DualGemm;
use warpline_family::Op;
use warpline_family::bucket::Bucket;
use warpline_family::error::FamilyError;
use warpline_family::family::{Case, Cost, Family, Place, Redirects};
use warpline_family::field::Word;
use warpline_family::plan::Plan;
use warpline_family::tensor::{HostTensor, TensorSpec};
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

/// The element type that [`Nvfp4DualGemm`] serves.
const NVFP4: Word = Word {
    name: "nvfp4",
    aliases: &[],
    help: "4 bits (e2m1), with a scale in e4m3 for every 16 along K",
};

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

    fn redirects(to: &mut impl Redirects) {
        to.family::<Nvfp4DualGemm>("dtype", NVFP4);
    }

    fn check(p: &Problem) -> Result<(), FamilyError> {
        Gemm::check(&p.gated())
    }

    fn config(p: &Problem, choice: &Choice, target: &Target) -> Result<Config, FamilyError> {
        Gemm::config(&p.gated(), choice, target)
    }

    fn baseline(p: &Problem, choice: &Choice, target: &Target) -> Result<Config, FamilyError> {
        Gemm::baseline(&p.gated(), choice, target)
    }

    fn candidates(p: &Problem, target: &Target) -> Vec<Config> {
        Gemm::candidates(&p.gated(), target)
    }

    fn plan(p: &Problem, c: &Config, target: &Target) -> Result<Plan, FamilyError> {
        Gemm::plan(&p.gated(), c, target)
    }

    fn class(p: &Problem) -> serde_json::Value {
        Gemm::class(&p.gated())
    }

    fn bucket(p: &Problem) -> Bucket {
        Gemm::bucket(&p.gated())
    }

    fn fit(
        p: &Problem,
        choice: &Choice,
        stored: &Choice,
        target: &Target,
    ) -> Result<Config, FamilyError> {
        Gemm::fit(&p.gated(), choice, stored, target)
    }

    fn estimate(p: &Problem, c: &Config, target: &Target) -> Option<f64> {
        Gemm::estimate(&p.gated(), c, target)
    }

    fn cost(p: &Problem) -> Cost {
        Gemm::cost(&p.gated())
    }

    fn inputs(p: &Problem) -> Vec<TensorSpec> {
        Gemm::inputs(&p.gated())
    }

    fn draw(p: &Problem, seed: u64) -> Vec<HostTensor> {
        Gemm::draw(&p.gated(), seed)
    }

    fn outputs(p: &Problem) -> Vec<TensorSpec> {
        Gemm::outputs(&p.gated())
    }

    fn reference(p: &Problem, inputs: &[HostTensor]) -> Vec<Vec<(f64, f64)>> {
        Gemm::reference(&p.gated(), inputs)
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
        let small = Gemm::reduced(&p.gated())?;
        Some(p.with_extents(&small))
    }

    fn period(p: &Problem) -> Option<Problem> {
        let small = Gemm::period(&p.gated())?;
        Some(p.with_extents(&small))
    }
}
