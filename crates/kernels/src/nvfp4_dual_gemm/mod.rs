//! `C = gate(A · B₁ᵀ) ∘ (A · B₂ᵀ)` where the weights are NVFP4, and A is as well, or f16 or bf16.
//!
//! Hopper multiplies no numbers of 4 bits, but every product of a code and a scale is exact in 16.
//! The GEMM loads codes; its consumers decode weights into the register operand of the tensor
//! cores, so that memory and shared memory carry 4 bits of each. A step before widens A, which is
//! small, to 16 bits, with K in the order that suits the weights; where A is very small, the GEMM
//! decodes it too.
//!
//! | where | what |
//! |---|---|
//! | [`problem`] | extents, layouts, tensors |
//! | [`schedule`] | the roles of the kernel, with the options that each kind has |
//! | [`config`] | schedule, tiles, stages, grid, and the flags for them |
//! | `complete` | flags to a config |
//! | `shared_memory` | shared memory of a config, asked of the builder |
//! | `heuristic` | configs worth a try, and how long each may take |
//! | `plan` | the kernels that solve a problem, and their arguments |
//! | `kernel`, `kernel_spec` | the roles of the GEMM by schedule, and what is compiled in |
//! | `context` | parameters, maps, rings, tiles |
//! | `load` | the role that loads codes and scales of the weights, and A |
//! | `multiply` | consumers that decode weights and multiply |
//! | `dequantize` | the schedule with a dequantizer and a second ring, to compare |
//! | `warps` | the schedule for few tokens: warps that decode and multiply, each for itself |
//! | `epilogue` | sums to values of C |
//! | `decode` | codes and scales to numbers, in registers |
//! | `widen`, `rows`, `scales` | the steps before: A to 16 bits, rows of codes, plain scales |
//! | `units` | blocks, panels, outputs of a consumer |
//! | `call` | the op: from a call to a problem |
//! | `reference` | float64 |
//! | `table` | the test table |

mod call;
mod complete;
pub mod config;
mod context;
mod decode;
mod dequantize;
mod epilogue;
mod heuristic;
mod kernel;
mod kernel_spec;
mod load;
mod multiply;
mod plan;
pub mod problem;
mod reference;
mod rows;
mod scales;
pub mod schedule;
mod shared_memory;
mod table;
mod units;
mod warps;
mod widen;

pub use config::{Choice, Config, Order};
pub use problem::Problem;
pub use schedule::{Form, Schedule};

use crate::gemm::Gemm;
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
pub struct Nvfp4DualGemm;

/// The shapes that it is measured at; the last is a step of decoding.
const SHAPES: [[u32; 3]; 5] = [
    [256, 4096, 7168],
    [512, 4096, 7168],
    [256, 3072, 4096],
    [512, 3072, 7168],
    [16, 4096, 7168],
];

impl Family for Nvfp4DualGemm {
    type Problem = Problem;
    type Choice = Choice;
    type Config = Config;

    const NAME: &'static str = "nvfp4-dual-gemm";
    const ABOUT: &'static str = "C = gate(A · B1ᵀ) ∘ (A · B2ᵀ) with weights in NVFP4";

    fn default_problem(place: Place) -> Problem {
        match place {
            Place::Cpu => Problem::new(256, 256, 512),
            Place::Gpu => Problem::new(4096, 14336, 4096),
        }
    }

    fn check(p: &Problem) -> Result<(), FamilyError> {
        p.check()
    }

    fn config(p: &Problem, choice: &Choice, target: &Target) -> Result<Config, FamilyError> {
        heuristic::config(p, choice, target)
    }

    fn baseline(p: &Problem, choice: &Choice, target: &Target) -> Result<Config, FamilyError> {
        // One loader, and two consumers that decode weights and have outputs of their own.
        Config::new(p, &Choice::default(), choice, target)
    }

    fn candidates(p: &Problem, target: &Target) -> Vec<Config> {
        heuristic::candidates(p, target)
    }

    fn plan(p: &Problem, c: &Config, target: &Target) -> Result<Plan, FamilyError> {
        plan::plan(p, c, target)
    }

    fn class(p: &Problem) -> serde_json::Value {
        serde_json::json!({
            "activations": p.activations,
            "gate": p.gate,
            "scale_layout": p.scale_layout,
            "scales": p.scales,
            "whole": p.is_whole(),
            "moves_rows": p.moves_rows(),
        })
    }

    fn bucket(p: &Problem) -> Bucket {
        Gemm::bucket(&p.widened())
    }

    fn fit(
        p: &Problem,
        choice: &Choice,
        stored: &Choice,
        target: &Target,
    ) -> Result<Config, FamilyError> {
        // The grid follows from the extents.
        let stored = Choice {
            ctas: None,
            ..stored.clone()
        };
        Config::new(p, &stored, choice, target)
    }

    fn estimate(p: &Problem, c: &Config, target: &Target) -> Option<f64> {
        Some(heuristic::estimate(p, c, target))
    }

    fn cost(p: &Problem) -> Cost {
        p.cost()
    }

    fn inputs(p: &Problem) -> Vec<TensorSpec> {
        p.specs()
    }

    fn draw(p: &Problem, seed: u64) -> Vec<HostTensor> {
        reference::inputs(p, seed)
    }

    fn outputs(p: &Problem) -> Vec<TensorSpec> {
        Gemm::outputs(&p.widened())
    }

    fn reference(p: &Problem, inputs: &[HostTensor]) -> Vec<Vec<(f64, f64)>> {
        reference::reference(p, inputs)
    }

    fn cases() -> Vec<Case<Problem, Choice>> {
        table::cases()
    }

    fn bench() -> Vec<(&'static str, Problem)> {
        let problem = |[m, n, k]: [u32; 3]| {
            let scale_layout = ScaleLayout::Block;
            let problem = Problem::new(m, n, k);
            (
                "nvfp4",
                Problem {
                    scale_layout,
                    ..problem
                },
            )
        };
        SHAPES.map(problem).into()
    }

    fn ops() -> Vec<Op<Self>> {
        vec![call::op()]
    }

    fn reduced(p: &Problem) -> Option<Problem> {
        let small = Problem {
            m: p.m.min(200),
            n: p.n.min(264),
            // The same remainder behind a block of scales.
            k: p.k.min(576 + p.k % units::BLOCK),
            ..p.clone()
        };
        (small != *p).then_some(small)
    }
}
