//! `C = gate(A · B₁ᵀ) ∘ (A · B₂ᵀ)`: the first half of a gated layer, SwiGLU and its kin.
//!
//! A product of which every tile has the sums of two factors, so that A is
//! brought once for both: forms, tiles and the chooser are those of
//! [`gemm`](crate::gemm).
//!
//! | where | what |
//! |---|---|
//! | [`problem`] | what is asked: extents, types, how the weights lie |
//! | `nvfp4` | the program where everything is NVFP4, which tensor cores here do not take |
//! | `call` | the ops: from a call to a problem |
//! | `table` | the test table |

mod call;
mod nvfp4;
pub mod problem;
mod table;

pub use problem::{Operands, Problem};

use crate::gemm::{Choice, Config, Gemm};
use crate::nvfp4::ScaleLayout;
use warpline_family::Op;
use warpline_family::bucket::Bucket;
use warpline_family::error::FamilyError;
use warpline_family::family::{Case, Cost, Family, Place};
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

/// The shapes that it is measured at in NVFP4; the last is a step of decoding.
const FOUR_BITS: [[u32; 3]; 5] = [
    [256, 4096, 7168],
    [512, 4096, 7168],
    [256, 3072, 4096],
    [512, 3072, 7168],
    [16, 4096, 7168],
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
        match p.product() {
            Some(product) => Gemm::check(&product),
            None => nvfp4::check(p),
        }
    }

    fn config(p: &Problem, choice: &Choice, target: &Target) -> Result<Config, FamilyError> {
        match p.product() {
            Some(product) => Gemm::config(&product, choice, target),
            None => nvfp4::config(p, choice, target),
        }
    }

    fn baseline(p: &Problem, choice: &Choice, target: &Target) -> Result<Config, FamilyError> {
        match p.product() {
            Some(product) => Gemm::baseline(&product, choice, target),
            None => nvfp4::baseline(p, choice, target),
        }
    }

    fn candidates(p: &Problem, target: &Target) -> Vec<Config> {
        match p.product() {
            Some(product) => Gemm::candidates(&product, target),
            None => nvfp4::candidates(p, target),
        }
    }

    fn plan(p: &Problem, c: &Config, target: &Target) -> Result<Plan, FamilyError> {
        match p.product() {
            Some(product) => Gemm::plan(&product, c, target),
            None => nvfp4::plan(p, c, target),
        }
    }

    fn class(p: &Problem) -> serde_json::Value {
        match p.product() {
            Some(product) => Gemm::class(&product),
            None => nvfp4::class(p),
        }
    }

    fn bucket(p: &Problem) -> Bucket {
        Gemm::bucket(&p.product().unwrap_or_else(|| nvfp4::widened(p)))
    }

    fn fit(
        p: &Problem,
        choice: &Choice,
        stored: &Choice,
        target: &Target,
    ) -> Result<Config, FamilyError> {
        match p.product() {
            Some(product) => Gemm::fit(&product, choice, stored, target),
            None => nvfp4::fit(p, choice, stored, target),
        }
    }

    fn estimate(p: &Problem, c: &Config, target: &Target) -> Option<f64> {
        match p.product() {
            Some(product) => Gemm::estimate(&product, c, target),
            None => nvfp4::estimate(p, c, target),
        }
    }

    fn cost(p: &Problem) -> Cost {
        match p.product() {
            Some(product) => Gemm::cost(&product),
            None => nvfp4::cost(p),
        }
    }

    fn inputs(p: &Problem) -> Vec<TensorSpec> {
        match p.product() {
            Some(product) => Gemm::inputs(&product),
            None => nvfp4::specs(p),
        }
    }

    fn draw(p: &Problem, seed: u64) -> Vec<HostTensor> {
        match p.product() {
            Some(product) => Gemm::draw(&product, seed),
            None => nvfp4::inputs(p, seed),
        }
    }

    fn outputs(p: &Problem) -> Vec<TensorSpec> {
        Gemm::outputs(&p.product().unwrap_or_else(|| nvfp4::widened(p)))
    }

    fn reference(p: &Problem, inputs: &[HostTensor]) -> Vec<Vec<(f64, f64)>> {
        match p.product() {
            Some(product) => Gemm::reference(&product, inputs),
            None => nvfp4::reference(p, inputs),
        }
    }

    fn cases() -> Vec<Case<Problem, Choice>> {
        table::cases()
    }

    fn large_cases() -> Vec<Case<Problem, Choice>> {
        table::large()
    }

    fn bench() -> Vec<(&'static str, Problem)> {
        let eight = Problem {
            dtype: Operands::E4m3,
            scales: true,
            ..Problem::new(4096, 14336, 4096)
        };
        let wide = SHAPES.map(|[m, n, k]| ("swiglu", Problem::new(m, n, k)));
        let four = FOUR_BITS.map(|[m, n, k]| {
            let problem = Problem {
                dtype: Operands::Nvfp4,
                scale_layout: ScaleLayout::Block,
                ..Problem::new(m, n, k)
            };
            ("nvfp4", problem)
        });
        (wide.into_iter().chain([("swiglu", eight)]))
            .chain(four)
            .collect()
    }

    fn ops() -> Vec<Op<Self>> {
        vec![call::swiglu(), call::dual_gemm(), nvfp4::op()]
    }

    fn op(p: &Problem) -> usize {
        match p.dtype {
            Operands::Nvfp4 => 2,
            _ => 0,
        }
    }

    fn reduced(p: &Problem) -> Option<Problem> {
        match p.product() {
            Some(product) => Gemm::reduced(&product).map(|small| p.of(small)),
            None => nvfp4::reduced(p),
        }
    }

    fn period(p: &Problem) -> Option<Problem> {
        Some(p.of(Gemm::period(&p.product()?)?))
    }
}
