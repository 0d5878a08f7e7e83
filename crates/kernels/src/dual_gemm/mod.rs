//! `C = gate(A · B₁ᵀ) ∘ (A · B₂ᵀ)`: a gated GEMM (SwiGLU, GEGLU).
//!
//! A GEMM with a gated mainloop and a gate epilogue, so that A is loaded once for both weights.
//! Schedules, tiles and the heuristic are those of [`gemm`]. The family
//! [`nvfp4_dual_gemm`](crate::nvfp4_dual_gemm) serves requests with NVFP4 weights.
//!
//! | where | what |
//! |---|---|
//! | [`problem`] | extents, types, weight layout; the conversion to a `gemm` problem |
//! | `draw_problem` | random problems |
//! | `call` | the ops: from call arguments to a problem |
//! | `table` | the test table |

mod call;
mod draw_problem;
pub mod problem;
mod table;

pub use problem::Problem;

use crate::gemm::{self, Choice, GemmFamily, GemmKind, OperandType};
use crate::nvfp4_dual_gemm::Nvfp4DualGemm;
use std::borrow::Cow;
use warpline_family::Op;
use warpline_family::family::{DeviceKind, Redirects, TestCase};
use warpline_family::field::Keyword;
use warpline_family::numbers::Random;

/// The kind of [`DualGemm`].
#[derive(Clone, Copy, Debug)]
pub struct GatedGemm;

/// `C = gate(A · B₁ᵀ) ∘ (A · B₂ᵀ)`.
pub type DualGemm = GemmFamily<GatedGemm>;

/// The benchmark shapes.
const SHAPES: [[u32; 3]; 5] = [
    [256, 4096, 7168],
    [512, 3072, 7168],
    [2048, 8192, 4096],
    [4096, 14336, 4096],
    [8192, 28672, 8192],
];

/// The element type that [`Nvfp4DualGemm`] serves.
const NVFP4: Keyword = Keyword {
    name: "nvfp4",
    aliases: &[],
    help: "4-bit codes (e2m1) with an e4m3 scale for every 16 elements of K",
};

impl GemmKind for GatedGemm {
    type Problem = Problem;

    const NAME: &'static str = "dual-gemm";
    const ABOUT: &'static str = "C = gate(A · B1ᵀ) ∘ (A · B2ᵀ), a gated GEMM (SwiGLU)";

    fn gemm(problem: &Problem) -> Cow<'_, gemm::Problem> {
        Cow::Owned(problem.gated())
    }

    fn with_extents(problem: &Problem, mnk: [u32; 3]) -> Problem {
        problem.with_extents(mnk)
    }

    fn default_problem(device: DeviceKind) -> Problem {
        match device {
            DeviceKind::Cpu => Problem::new(256, 256, 512),
            DeviceKind::Gpu => Problem::new(4096, 14336, 4096),
        }
    }

    fn redirects(to: &mut impl Redirects) {
        to.family::<Nvfp4DualGemm>("dtype", NVFP4);
    }

    fn draw_problem(random: &mut Random) -> Problem {
        draw_problem::draw(random)
    }

    fn cases() -> Vec<TestCase<Problem, Choice>> {
        table::cases()
    }

    fn large_cases() -> Vec<TestCase<Problem, Choice>> {
        table::large()
    }

    fn bench() -> Vec<(&'static str, Problem)> {
        let fp8 = Problem {
            dtype: OperandType::E4m3,
            scales: true,
            ..Problem::new(4096, 14336, 4096)
        };
        let bf16 = SHAPES.map(|[m, n, k]| ("swiglu", Problem::new(m, n, k)));
        bf16.into_iter().chain([("swiglu", fp8)]).collect()
    }

    fn surveys() -> Vec<(&'static str, Problem)> {
        let layers = gemm::layers::gated().into_iter();
        layers
            .map(|[m, n, k]| ("layers-gated", Problem::new(m, n, k)))
            .collect()
    }

    fn ops() -> Vec<Op<DualGemm>> {
        vec![call::swiglu(), call::dual_gemm()]
    }
}
