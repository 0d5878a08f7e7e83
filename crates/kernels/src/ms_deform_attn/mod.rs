//! Multi-scale deformable attention, forward: each query sums `L · P` sampled points of `L` feature maps
//! (levels). A point is interpolated bilinearly between four pixels.
//!
//! # Tensors and indices
//!
//! | tensor | shape | element of batch `b`, query `q`, head `h`, level `l`, point `p`, channel `c` |
//! |---|---|---|
//! | `value` | `[B, S, H, C]` | `((b·S + s)·H + h)·C + c` for pixel `s` |
//! | `sampling_locations` | `[B, Q, H, L, P, 2]` | x: `(r·L·P + k)·2`, y: the next one |
//! | `attention_weights` | `[B, Q, H, L, P]` | `r·L·P + k` |
//! | `out` | `[B, Q, H·C]` | `r·C + c` |
//!
//! `r = (b·Q + q)·H + h` is the *output row* (`gather::OutputRow`), and `k = l·P + p` the point of a query. `S`
//! counts the pixels of all levels. Level `l` has `H_l × W_l` pixels and starts at `start_l`, the sum of
//! the sizes of the levels before it. In layout `halo` a border of zeros adds 2 to both sizes.
//!
//! # From a location to four corners
//!
//! Locations are normalized: pixel `(i, j)` of a level has its center at `x = (j + 0.5) / W_l`,
//! `y = (i + 0.5) / H_l`. Per level (`level::LevelGeometry`):
//!
//! ```text
//! h_im = y · H_l - 0.5                      w_im = x · W_l - 0.5
//! r0   = clamp(⌊h_im⌋, 0, H_l - 2)          c0   = clamp(⌊w_im⌋, 0, W_l - 2)
//! α_i  = max(0, 1 - |h_im - (r0 + i)|)      β_j  = max(0, 1 - |w_im - (c0 + j)|)       i, j ∈ {0, 1}
//! s0   = start_l + r0 · W_l + c0            corners s0, s0 + 1, s0 + W_l, s0 + W_l + 1
//! out += attention_weight · Σ_ij α_i · β_j · value[s0 + i · W_l + j]
//! ```
//!
//! For an interior point these are the bilinear weights. At the border the 2 × 2 window is clamped into
//! the map; a weight depends only on the distance, so a corner outside the map has weight 0, and a
//! corner inside keeps its weight. If all weights are 0 (the point is outside, or its location is NaN), the
//! attention weight is replaced by 0, even if it is infinite or NaN. A level with one row or
//! column has no second one: that weight is 0, and the load repeats the first. In layout `halo` the offset is
//! +0.5 instead of -0.5 (one border pixel more), and clamps and row pitch use the sizes with border.
//!
//! # How lanes divide the work
//!
//! A lane loads 16 bytes of a pixel (a *chunk*). One head has `⌈C · size / 16⌉` chunks, rounded up to a power
//! of two of lanes; more than 16 are split into channel slices. The lanes of one query and head form 1, 2 or 4
//! *corner groups* (`--reads`): one group loads all four corners (`pixel`), each of two groups loads a column
//! (`pair`), each of four groups loads a corner (schedule `boxes`). `lanes::LaneLayout` has the numbers, and
//! `gather::LanePosition` decodes
//!
//! ```text
//! lane_id = (item · corner_groups + corner_group) · lanes_per_pixel + chunk
//! byte    = (b·S·H + h)·C·size + s · H·C·size + chunk · 16
//! ```
//!
//! An item is one query and head of the warp. After the sum over points, corner groups add their sums by shuffles
//! (`gather::store`).
//!
//! The weights of a point are computed once and shared by its lanes as a *sampled record* (`record`): the
//! pixel `s0` of 1, 2 or 4 points (16 bits each if there are several), and for each corner group the
//! products `attention_weight · α_i · β_j` of its corners, as pairs of f16 for f16 values, else as f32.
//!
//! # Example
//!
//! Levels 4 × 6 and 2 × 3, so `start = [0, 24]` and `S = 30`; `B = 1`, `Q = 10`, `H = 2`, `C = 32` in f16, `P = 4`. Take
//! `q = 5`, `h = 1`, `l = 1`, `p = 2` with location (0.3, 0.9) and attention weight 0.5:
//!
//! ```text
//! r = 5·2 + 1 = 11, k = 1·4 + 2 = 6         x at (11·8 + 6)·2 = 188, weight at 94, out at 11·32 = 352
//! h_im = 0.9·2 - 0.5 = 1.3                  w_im = 0.3·3 - 0.5 = 0.4
//! r0 = clamp(1, 0, 0) = 0, α = [0, 0.7]     c0 = clamp(0, 0, 1) = 0, β = [0.6, 0.4]
//! s0 = 24, corners 24, 25, 27, 28           weights 0, 0, 0.5·0.7·0.6 = 0.21, 0.5·0.7·0.4 = 0.14
//! ```
//!
//! Row 2 is outside, so only the row of pixels 27 and 28 counts. Pixel 27 of head 1 starts at element
//! `(27·2 + 1)·32 = 1760`, byte 3520; the lane of chunk 2 loads bytes 3552 to 3567, channels 16 to 23. With
//! two heads a lane layout has 4 lanes per pixel and one corner group: a warp works on 8 items, 4 queries of 2 heads.
//!
//! # Modules
//!
//! | module | contents |
//! |---|---|
//! | [`problem`] | extents, element types, levels |
//! | `draw_problem` | random problems |
//! | [`config`], `heuristic` | tuning parameters and their selection |
//! | [`lanes`] | the division of a warp's lanes |
//! | `level` | level geometry: from a location to a pixel and weights |
//! | `texel` | element types: loads, weights and sums |
//! | `context` | launch parameters; levels resident in shared memory |
//! | `work_split`, `query_order` | division of queries among CTAs; order of queries |
//! | `points` | loading and sampling of the points of a lane |
//! | `record` | sampled records in shared memory and through shuffles |
//! | `gather` | weighted sums of corners |
//! | `plain`, `specialized`, `boxes` | the schedules |
//! | `kernel` | the kernel of a class and a config |
//! | `reference` | random inputs; the float64 reference |
//! | `op` | the Python op: from a call to a problem |
//! | `infer` | problem fields from stored tensors |
//! | `suite`, `table` | benchmark problems; test table |

mod boxes;
pub mod config;
mod context;
mod draw_problem;
mod gather;
mod heuristic;
mod infer;
mod kernel;
pub mod lanes;
mod level;
mod op;
mod plain;
mod points;
pub mod problem;
mod query_order;
mod record;
mod reference;
mod specialized;
mod suite;
mod table;
mod texel;
mod work_split;

pub use config::{Choice, Config, QueryOrder, RecordPath, Schedule, WorkSplit};
pub use lanes::CornerReads;
pub use problem::{LevelLayout, LevelShapes, PointDistribution, Problem};

use lanes::LaneLayout;
use query_order::QueryPermutation;
use warpline_family::Op;
use warpline_family::error::FamilyError;
use warpline_family::family::{Cost, DeviceKind, Family, TestCase};
use warpline_family::numbers::Random;
use warpline_family::plan::{Buffer, LaunchStep, Plan, TensorArg};
use warpline_family::program::Program;
use warpline_family::stored::{IsOptionSet, StoredTensors};
use warpline_family::tensor::{HostTensor, TensorSpec};
use warpline_ir::{Kernel, Target};
use work_split::WorkPartition;

/// The family of multi-scale deformable attention.
#[derive(Clone, Copy, Debug)]
pub struct MsDeformAttn;

impl Family for MsDeformAttn {
    type Problem = Problem;
    type Choice = Choice;
    type Config = Config;

    const NAME: &'static str = "ms-deform-attn";
    const ABOUT: &'static str = "multi-scale deformable attention: weighted sums of bilinear samples of several feature maps";

    fn default_problem(device: DeviceKind) -> Problem {
        match device {
            DeviceKind::Cpu => Problem::new(2, 77, 2, 4, &[[16, 12], [8, 6], [4, 3], [2, 2]]),
            DeviceKind::Gpu => Problem::new(2, 22223, 8, 4, &suite::DETR),
        }
    }

    fn check(p: &Problem) -> Result<(), FamilyError> {
        p.check()
    }

    fn draw_problem(random: &mut Random) -> Problem {
        draw_problem::draw(random)
    }

    fn config(p: &Problem, choice: &Choice, target: &Target) -> Result<Config, FamilyError> {
        heuristic::select(p, choice, target)
    }

    fn fixed_choice(p: &Problem, choice: &Choice, target: &Target) -> Result<Choice, FamilyError> {
        heuristic::fixed_choice(p, choice, target)
    }

    fn baseline(p: &Problem, choice: &Choice, target: &Target) -> Result<Config, FamilyError> {
        // Without resident levels the plain schedule has no synchronization.
        let choice = Choice {
            schedule: choice.schedule.or(Some(Schedule::Plain)),
            resident_levels: choice.resident_levels.or(Some(0)),
            ..choice.clone()
        };
        heuristic::select(p, &choice, target)
    }

    fn candidates(p: &Problem, target: &Target) -> Vec<Config> {
        let mut all: Vec<Config> = Vec::new();
        let mut add = |choice: Choice| {
            let config = heuristic::select(p, &choice, target);
            all.extend(config.ok().filter(|c| !all.contains(c)));
        };
        add(Choice::default());
        let orders: &[QueryOrder] = match u64::from(p.num_query) == p.total_pixels() {
            true => &[QueryOrder::Rows, QueryOrder::Strips],
            false => &[QueryOrder::Rows],
        };
        for &order in orders {
            for (warps, points_in_flight) in [(15, 4), (19, 3), (19, 4)] {
                add(Choice {
                    schedule: Some(Schedule::Plain),
                    warps: Some(warps),
                    points_in_flight: Some(points_in_flight),
                    query_order: Some(order),
                    ..Choice::default()
                });
            }
            for (producers, tma_points) in [(2, false), (2, true), (3, false)] {
                add(Choice {
                    schedule: Some(Schedule::Specialized),
                    producers: Some(producers),
                    tma_points: Some(tma_points),
                    query_order: Some(order),
                    ..Choice::default()
                });
            }
        }
        for work_split in [WorkSplit::Parts, WorkSplit::Ranges] {
            add(Choice {
                work_split: Some(work_split),
                ..Choice::default()
            });
        }
        for resident_levels in [0, 1] {
            add(Choice {
                resident_levels: Some(resident_levels),
                ..Choice::default()
            });
        }
        all
    }

    fn plan(p: &Problem, c: &Config, target: &Target) -> Result<Plan, FamilyError> {
        let class = p.class();
        let lanes = LaneLayout::new(&class, c.reads, p.heads);
        let compiled_in = Config {
            parts: 0,
            ctas: 0,
            ..*c
        };
        let key = format!("{} {class:?} {lanes:?} {compiled_in:?}", Self::NAME);
        let kernel = Program::cached(key, target, |target| {
            Kernel::build("ms_deform_attn", target, |k| {
                kernel::roles(k, &class, c, lanes)
            })
        })?;
        Plan::new(vec![step(kernel, p, c, &lanes)], 0)
    }

    fn cost(p: &Problem) -> Cost {
        let [value, .., locations, weights] = p.input_specs();
        let points = weights.elements() as f64;
        let specs = [value, locations, weights, p.output_spec()];
        Cost {
            // One multiply-add per channel and corner.
            flops: 8.0 * points * f64::from(p.channels),
            bytes: specs.iter().map(|spec| spec.bytes() as f64).sum(),
        }
    }

    fn inputs(p: &Problem) -> Vec<TensorSpec> {
        p.input_specs().into()
    }

    fn draw(p: &Problem, seed: u64) -> Vec<HostTensor> {
        reference::inputs(p, seed)
    }

    fn outputs(p: &Problem) -> Vec<TensorSpec> {
        vec![p.output_spec()]
    }

    fn reference(p: &Problem, inputs: &[HostTensor]) -> Vec<Vec<(f64, f64)>> {
        vec![reference::reference(p, inputs)]
    }

    fn cases() -> Vec<TestCase<Problem, Choice>> {
        table::cases()
    }

    fn bench() -> Vec<(&'static str, Problem)> {
        suite::problems()
    }

    fn ops() -> Vec<Op<Self>> {
        vec![Op {
            signature: op::signature(),
            problem: op::problem_of_call,
            args: op::args,
        }]
    }

    fn period(p: &Problem) -> Option<Problem> {
        // Batches are independent.
        (p.batch > 1).then(|| Problem {
            batch: 1,
            ..p.clone()
        })
    }

    fn reduced(p: &Problem, config: &Config) -> Option<(Problem, Config)> {
        let mut small = Problem {
            batch: p.batch.min(2),
            num_query: p.num_query.min(600),
            ..p.clone()
        };
        // Query order strips needs one query per pixel, so the reduced problem keeps that property.
        if u64::from(p.num_query) == p.total_pixels() && small.num_query < p.num_query {
            let shapes = p
                .shapes
                .0
                .iter()
                .map(|shape| shape.map(|side| side.div_ceil(8)));
            small.shapes = LevelShapes(shapes.collect());
            small.spatial_size = None;
            small.num_query = small.total_pixels() as u32;
        }
        (small != *p).then_some((small, *config))
    }

    fn complete_from_tensors(
        p: &mut Problem,
        is_set: IsOptionSet<'_>,
        tensors: &dyn StoredTensors,
    ) -> Result<(), FamilyError> {
        infer::complete(p, is_set, tensors)
    }
}

/// Returns the launch of a kernel with its arguments.
fn step(kernel: Program, p: &Problem, c: &Config, lanes: &LaneLayout) -> LaunchStep {
    // `Problem::check` rejects extents of 2³¹ and more.
    let mut step = LaunchStep::new(kernel, [c.ctas, 1, 1])
        .pointer("value", Buffer::Input(0))
        .pointer("locations", Buffer::Input(3))
        .pointer("weights", Buffer::Input(4))
        .pointer("out", Buffer::Output(0))
        .scalar("spatial", p.total_pixels() as u32)
        .scalar("queries", p.num_query)
        .scalar("heads", p.heads)
        .divisor(
            "groups_per_batch",
            p.heads / lanes.heads_per_warp * lanes.channel_slices,
        );
    if c.resident_levels > 0 {
        let row = u64::from(p.heads * p.channels);
        let rows = u64::from(p.batch).max(1) * p.total_pixels();
        step = step.tensor("pixels", TensorArg::dense(Buffer::Input(0), &[row, rows]));
    }
    if lanes.channel_slices > 1 {
        step = step.divisor("slices_divisor", lanes.channel_slices);
    }
    for (i, (shape, start)) in p.shapes.0.iter().zip(p.level_starts()).enumerate() {
        step = step
            .scalar(&format!("height_{i}"), shape[0])
            .scalar(&format!("width_{i}"), shape[1])
            .scalar(&format!("start_{i}"), start as u32);
    }
    step = WorkPartition::bind_args(step, p, c, lanes);
    step = QueryPermutation::bind_args(step, p, c);
    step = specialized::bind_args(step, p, c, lanes);
    boxes::bind_args(step, p, c)
}
