//! `C = A · Bᵀ + bias` with an NVFP4 weight B and A in f16 or bf16 (W4A16).
//!
//! The roles, rings and schedules are those of [`nvfp4_dual_gemm`](crate::nvfp4_dual_gemm). There a
//! consumer's 64 accumulator rows are 32 gate rows and 32 up rows; here they are 64 rows of one weight,
//! and each of them is an output.
//!
//! | where | what |
//! |---|---|
//! | [`problem`] | extents, tensors; the operands of the shared plan |
//! | [`config`] | the config: schedule, tiles, stages, grid |
//! | `draw_problem` | random problems |
//! | `call` | the op: from call arguments to a problem |
//! | `reference` | the float64 reference |
//! | `table` | the test table |

mod call;
pub mod config;
mod draw_problem;
pub mod problem;
mod reference;
mod table;

pub use crate::nvfp4_dual_gemm::Choice;
pub use config::Config;
pub use problem::Problem;

use crate::gemm::Gemm;
use crate::nvfp4::ScaleLayout;
use crate::nvfp4_dual_gemm::plan;
use crate::nvfp4_dual_gemm::scale_boxes::ScaleBoxes;
use crate::nvfp4_dual_gemm::units::reduced_k;
use warpline_family::Op;
use warpline_family::bucket::Bucket;
use warpline_family::error::FamilyError;
use warpline_family::family::{Cost, DeviceKind, Family, TestCase};
use warpline_family::numbers::Random;
use warpline_family::plan::Plan;
use warpline_family::tensor::{HostTensor, TensorSpec};
use warpline_ir::Target;

/// The family.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nvfp4Linear;

/// The benchmark shapes, [M, N, K]: decode steps and a prefill of two layers of an 8B model.
const SHAPES: [[u32; 3]; 9] = [
    [1, 4096, 4096],
    [16, 4096, 4096],
    [256, 4096, 4096],
    [1, 14336, 4096],
    [16, 14336, 4096],
    [256, 14336, 4096],
    [1, 4096, 14336],
    [16, 4096, 14336],
    [256, 4096, 14336],
];

impl Family for Nvfp4Linear {
    type Problem = Problem;
    type Choice = Choice;
    type Config = Config;

    const NAME: &'static str = "nvfp4-linear";
    const ABOUT: &'static str = "C = A · Bᵀ + bias with a weight in NVFP4 (W4A16)";

    fn default_problem(device: DeviceKind) -> Problem {
        match device {
            DeviceKind::Cpu => Problem::new(64, 256, 512),
            DeviceKind::Gpu => Problem::new(16, 4096, 4096),
        }
    }

    fn check(p: &Problem) -> Result<(), FamilyError> {
        p.check()
    }

    fn draw_problem(random: &mut Random) -> Problem {
        draw_problem::draw(random)
    }

    fn config(p: &Problem, choice: &Choice, target: &Target) -> Result<Config, FamilyError> {
        Config::selected(p, choice, target)
    }

    fn fixed_choice(_: &Problem, choice: &Choice, _: &Target) -> Result<Choice, FamilyError> {
        config::fixed_choice(choice)
    }

    fn baseline(p: &Problem, choice: &Choice, target: &Target) -> Result<Config, FamilyError> {
        Config::new(p, &Choice::default(), choice, target)
    }

    fn candidates(p: &Problem, target: &Target) -> Vec<Config> {
        Config::candidates(p, target)
    }

    fn plan(p: &Problem, c: &Config, target: &Target) -> Result<Plan, FamilyError> {
        plan::plan(&p.operands()?, &c.kernel, target)
    }

    fn class(p: &Problem) -> serde_json::Value {
        serde_json::json!({
            "dtype": p.dtype,
            "scale_layout": p.scale_layout,
            "scale_rows": p.shape().scale_boxes == ScaleBoxes::Rows,
            "scale": p.scale,
            "bias": p.bias,
            "whole": p.shape().has_whole_blocks(),
            "moves_rows": p.shape().needs_aligned_copy(),
        })
    }

    fn bucket(p: &Problem) -> Bucket {
        Gemm::bucket(&p.gemm())
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
        Some(c.estimate(p, target))
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
        Gemm::outputs(&p.gemm())
    }

    fn reference(p: &Problem, inputs: &[HostTensor]) -> Vec<Vec<(f64, f64)>> {
        reference::reference(p, inputs)
    }

    fn cases() -> Vec<TestCase<Problem, Choice>> {
        table::cases()
    }

    fn bench() -> Vec<(&'static str, Problem)> {
        let problem = |[m, n, k]: [u32; 3]| {
            let scale_layout = ScaleLayout::Block;
            let problem = Problem::new(m, n, k);
            (
                "nvfp4-linear",
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

    fn reduced(p: &Problem, config: &Config) -> Option<(Problem, Config)> {
        let small = Problem {
            m: p.m.min(200),
            n: p.n.min(264),
            k: reduced_k(p.k),
            ..p.clone()
        };
        (small != *p).then_some((small, *config))
    }
}
