//! Attention forward: `O = softmax(scale · Q Kᵀ) V` for every batch and head.
//!
//! A CTA computes a tile of queries. One role loads Q once, and K and V block by block, from the last
//! visible block to the first; the loop over blocks without a masked score has no mask. Each consumer has
//! 64 queries, whose scores, probabilities and output stay in its registers.
//!
//! | where | what |
//! |---|---|
//! | [`problem`] | extents, masks, tensors |
//! | `rows` | the strides of Q, K, V and O |
//! | [`config`] | schedule, tile, stages |
//! | `schedule` | one file per schedule |
//! | `context` | parameters, rings, the load role, the epilogue |
//! | `mask` | visible keys, and the blocks of keys that a tile visits |
//! | `scores` | softcap, bias, mask, sink |
//! | `bias` | the bias in memory |
//! | `softmax` | the running maximum and sum |
//! | `tile_table` | the kernel that finds the sequence of each tile |
//! | `sequence` | packed sequences, lengths of keys, pages |
//! | `sequence_values` | the values of the tensors of sequences |
//! | `spans` | rows that a tensor map bounds at run time |
//! | `work` | the order of tiles |
//! | `output` | where O and the logarithms are stored |
//! | `combine` | the kernel that adds parts of the keys |
//! | `call` | the Python op |
//! | `plan`, `workspace` | the launches, and what they hand to each other |
//! | `draw_problem` | random problems |
//! | `reference` | the float64 reference |
//! | `suite` | the benchmark |
//! | `table` | the test table |

mod bias;
mod call;
mod combine;
pub mod config;
mod context;
mod draw_problem;
mod mask;
mod output;
mod plan;
pub mod problem;
mod reference;
mod rows;
mod schedule;
mod scores;
mod sequence;
mod sequence_values;
mod softmax;
mod spans;
mod suite;
mod table;
mod tile_table;
mod work;
mod workspace;

pub use bias::BiasStrides;
pub use config::{Choice, Config, Schedule, TileAssignment};
pub use problem::{AddendType, Corner, ElementType, KeyLens, Problem};
pub use rows::Strides;

use warpline_family::Op;
use warpline_family::error::FamilyError;
use warpline_family::family::{DeviceKind, Family, TestCase};
use warpline_family::numbers::Random;
use warpline_family::plan::Plan;
use warpline_family::tensor::{HostTensor, TensorSpec};
use warpline_ir::Target;

/// The family.
#[derive(Clone, Copy, Debug, Default)]
pub struct Attention;

impl Family for Attention {
    type Problem = Problem;
    type Choice = Choice;
    type Config = Config;

    const NAME: &'static str = "attention";
    const ABOUT: &'static str = "O = softmax(scale · Q Kᵀ) V, attention forward";

    fn default_problem(device: DeviceKind) -> Problem {
        match device {
            DeviceKind::Cpu => Problem::new(1, 2, [256, 384], 64),
            DeviceKind::Gpu => Problem::new(2, 16, [8192, 8192], 128),
        }
    }

    fn check(p: &Problem) -> Result<(), FamilyError> {
        p.check()
    }

    fn draw_problem(random: &mut Random) -> Problem {
        draw_problem::draw(random)
    }

    fn config(p: &Problem, choice: &Choice, target: &Target) -> Result<Config, FamilyError> {
        Config::select(p, choice, target)
    }

    fn fixed_choice(p: &Problem, choice: &Choice, target: &Target) -> Result<Choice, FamilyError> {
        config::fixed_choice(p, choice, target)
    }

    fn choices(p: &Problem) -> Vec<Choice> {
        config::choices(p)
    }

    fn plan(p: &Problem, c: &Config, target: &Target) -> Result<Plan, FamilyError> {
        plan::plan(p, c, target)
    }

    fn flops(p: &Problem) -> f64 {
        p.flops()
    }

    fn inputs(p: &Problem) -> Vec<TensorSpec> {
        p.inputs()
    }

    fn outputs(p: &Problem) -> Vec<TensorSpec> {
        p.outputs()
    }

    fn draw(p: &Problem, seed: u64) -> Vec<HostTensor> {
        let mut random = Random::new(seed);
        let draw = |spec: TensorSpec| match p.draw_sequences(&spec, &mut random) {
            Some(tensor) => tensor,
            None => HostTensor::normal(spec, &mut random),
        };
        p.inputs().into_iter().map(draw).collect()
    }

    fn check_values(p: &Problem, inputs: &[HostTensor]) -> Result<(), FamilyError> {
        p.check_sequence_values(inputs)
    }

    fn reference(p: &Problem, inputs: &[HostTensor]) -> Vec<Vec<(f64, f64)>> {
        reference::reference(p, inputs)
    }

    fn ops() -> Vec<Op<Self>> {
        vec![Op {
            signature: call::signature(),
            problem: call::problem_of_call,
            args: call::args,
        }]
    }

    fn bench() -> Vec<(&'static str, Problem)> {
        suite::problems()
    }

    fn reduced(p: &Problem, config: &Config) -> Option<(Problem, Config)> {
        // Two heads of K and V in all: in one batch, or in two batches with one head each.
        let (batch, kv_heads) = match p.kv_heads() {
            0 | 1 => (p.batch.min(2), p.kv_heads()),
            _ if p.sequence_class().is_some() => (p.batch.min(3), 2),
            _ => (p.batch.min(1), 2),
        };
        let group = p.heads / p.kv_heads().max(1);
        let group = match config.tile_heads {
            1 => group.min(2),
            _ => group,
        };
        // Whole blocks stay whole, and others do not become so.
        let rest = u32::from(!p.keys.is_multiple_of(config.tile_keys));
        let keys = p.keys.min(match p.page {
            Some(page) => 100 * page,
            None => 4 * config.tile_keys - rest,
        });
        let small = Problem {
            heads: kv_heads * group,
            kv_heads: Some(kv_heads),
            batch,
            queries: p.queries.min(300),
            keys,
            max_pages: p.max_pages.map(|pages| pages.min(12)),
            q_strides: None,
            k_strides: None,
            v_strides: None,
            o_strides: None,
            bias_strides: None,
            ..p.clone()
        };
        (small != *p).then_some((small, *config))
    }

    fn cases() -> Vec<TestCase<Problem, Choice>> {
        table::cases()
    }
}
