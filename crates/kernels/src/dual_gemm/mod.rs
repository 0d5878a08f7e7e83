//! `C = gate(A · B₁ᵀ) ∘ (A · B₂ᵀ)`: the first half of a gated layer, SwiGLU and its kin.
//!
//! A GEMM with a gated mainloop and a gate epilogue, so that A is loaded once for both weights:
//! schedules, tiles and the heuristic are those of [`gemm`]. Requests for weights in
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

use crate::gemm::{self, Choice, Factor, GemmFamily, GemmKind};
use crate::nvfp4_dual_gemm::Nvfp4DualGemm;
use std::borrow::Cow;
use warpline_family::Op;
use warpline_family::family::{Case, Place, Redirects};
use warpline_family::field::Word;

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
const NVFP4: Word = Word {
    name: "nvfp4",
    aliases: &[],
    help: "4 bits (e2m1), with a scale in e4m3 for every 16 along K",
};

impl GemmKind for GatedGemm {
    type Problem = Problem;

    const NAME: &'static str = "dual-gemm";
    const ABOUT: &'static str = "C = gate(A · B1ᵀ) ∘ (A · B2ᵀ), the first half of a gated layer";

    fn gemm(problem: &Problem) -> Cow<'_, gemm::Problem> {
        Cow::Owned(problem.gated())
    }

    fn with_extents(problem: &Problem, mnk: [u32; 3]) -> Problem {
        problem.with_extents(mnk)
    }

    fn default_problem(place: Place) -> Problem {
        match place {
            Place::Cpu => Problem::new(256, 256, 512),
            Place::Gpu => Problem::new(4096, 14336, 4096),
        }
    }

    fn redirects(to: &mut impl Redirects) {
        to.family::<Nvfp4DualGemm>("dtype", NVFP4);
    }

    fn cases() -> Vec<Case<Problem, Choice>> {
        table::cases()
    }

    fn large_cases() -> Vec<Case<Problem, Choice>> {
        table::large()
    }

    fn bench() -> Vec<(&'static str, Problem)> {
        let fp8 = Problem {
            dtype: Factor::E4m3,
            scales: true,
            ..Problem::new(4096, 14336, 4096)
        };
        let bf16 = SHAPES.map(|[m, n, k]| ("swiglu", Problem::new(m, n, k)));
        bf16.into_iter().chain([("swiglu", fp8)]).collect()
    }

    fn ops() -> Vec<Op<DualGemm>> {
        vec![call::swiglu(), call::dual_gemm()]
    }
}
