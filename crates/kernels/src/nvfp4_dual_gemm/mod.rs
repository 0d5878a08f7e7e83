//! `C = gate(A · B₁ᵀ) ∘ (A · B₂ᵀ)` with NVFP4 weights and A in NVFP4, f16 or bf16.
//!
//! Hopper has no 4-bit tensor cores, but every product of a code and a scale is exact in 16 bits. The
//! kernel loads codes, and its consumers decode weights into the register operand of wgmma: memory and
//! shared memory carry 4 bits per weight. An earlier launch widens A, which is small, to 16 bits, with
//! K in the order of the decoded weights. For very small A the GEMM kernel decodes A too.
//!
//! | where | what |
//! |---|---|
//! | [`problem`] | extents, layouts, tensors |
//! | `draw_problem` | random problems |
//! | [`schedule`] | the schedules with their options |
//! | [`config`] | schedule, tiles, stages, grid, and the flags that set them |
//! | `complete` | conversion of flags to a config |
//! | `shared_memory` | shared memory of a config, computed by the builder |
//! | `heuristic` | the candidate configs and their estimated times |
//! | `operands` | the tensors of a problem in memory |
//! | `plan` | the launches that solve a problem, and their arguments |
//! | `kernel`, `kernel_spec` | the roles of the GEMM kernel by schedule, and its compiled-in part |
//! | `shape` | the part of a problem on which configs depend |
//! | `context` | parameters, tensor maps, rings, tiles |
//! | `scale_boxes` | how scales are loaded, and their places in a slot |
//! | `load` | the producer: codes and scales of the weights, and A |
//! | `multiply` | consumers that decode weights and multiply |
//! | `dequantize` | the schedule `dequantizer`: a decoding role and a second ring |
//! | `warps` | the schedule `warps`, for few tokens: every warp decodes and multiplies |
//! | `epilogue` | split-K exchange, scales, gate, store |
//! | `decode` | decoding of codes and scales in registers |
//! | `widen`, `align_rows`, `scales` | the earlier launches: widen A, align rows of codes, rearrange plain scales |
//! | `units` | sizes along K and outputs of a consumer |
//! | `call` | the op: from call arguments to a problem |
//! | `reference` | the float64 reference |
//! | `table` | the test table |

pub(crate) mod align_rows;
pub(crate) mod call;
mod complete;
pub mod config;
pub(crate) mod context;
pub(crate) mod decode;
mod dequantize;
pub(crate) mod draw_problem;
mod epilogue;
pub(crate) mod heuristic;
pub(crate) mod kernel;
pub(crate) mod kernel_spec;
mod load;
mod multiply;
pub(crate) mod operands;
pub(crate) mod plan;
pub mod problem;
pub(crate) mod reference;
pub(crate) mod scale_boxes;
pub(crate) mod scales;
pub mod schedule;
pub(crate) mod shape;
mod shared_memory;
mod table;
pub(crate) mod units;
mod warps;
pub(crate) mod widen;

pub use config::{Choice, Config, Raster};
pub use problem::Problem;
pub use schedule::{Schedule, ScheduleKind};

use self::scale_boxes::ScaleBoxes;

use crate::gemm::Gemm;
use crate::nvfp4::ScaleLayout;
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
pub struct Nvfp4DualGemm;

/// The benchmark shapes, [M, N, K]; the last is a decode step.
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

    fn default_problem(device: DeviceKind) -> Problem {
        match device {
            DeviceKind::Cpu => Problem::new(256, 256, 512),
            DeviceKind::Gpu => Problem::new(4096, 14336, 4096),
        }
    }

    fn check(p: &Problem) -> Result<(), FamilyError> {
        p.check()
    }

    fn draw_problem(random: &mut Random) -> Problem {
        draw_problem::draw(random)
    }

    fn config(p: &Problem, choice: &Choice, target: &Target) -> Result<Config, FamilyError> {
        heuristic::config(&p.shape(), choice, target)
    }

    fn fixed_choice(_: &Problem, choice: &Choice, _: &Target) -> Result<Choice, FamilyError> {
        heuristic::fixed_choice(choice)
    }

    fn baseline(p: &Problem, choice: &Choice, target: &Target) -> Result<Config, FamilyError> {
        // The defaults: cooperative, two consumers.
        Config::new(&p.shape(), &Choice::default(), choice, target)
    }

    fn candidates(p: &Problem, target: &Target) -> Vec<Config> {
        heuristic::candidates(&p.shape(), target)
    }

    fn plan(p: &Problem, c: &Config, target: &Target) -> Result<Plan, FamilyError> {
        plan::plan(&p.operands()?, c, target)
    }

    fn class(p: &Problem) -> serde_json::Value {
        serde_json::json!({
            "activations": p.activations,
            "gate": p.gate,
            "scale_layout": p.scale_layout,
            "scale_rows": p.shape().scale_boxes == ScaleBoxes::Rows,
            "scales": p.scales,
            "whole": p.shape().has_whole_blocks(),
            "moves_rows": p.shape().needs_aligned_copy(),
        })
    }

    fn bucket(p: &Problem) -> Bucket {
        Gemm::bucket(&p.gated_gemm())
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
        Config::new(&p.shape(), &stored, choice, target)
    }

    fn estimate(p: &Problem, c: &Config, target: &Target) -> Option<f64> {
        Some(heuristic::estimate(&p.shape(), c, target))
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
        Gemm::outputs(&p.gated_gemm())
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

    fn reduced(p: &Problem, config: &Config) -> Option<(Problem, Config)> {
        let small = Problem {
            m: p.m.min(200),
            n: p.n.min(264),
            k: units::reduced_k(p.k),
            ..p.clone()
        };
        (small != *p).then_some((small, *config))
    }
}
