//! Multi-scale deformable attention, forward: every query takes the weighed sum
//! of some points of several maps, each between four pixels.
//!
//! | where | what |
//! |---|---|
//! | [`problem`] | what is asked: extents, types, levels |
//! | [`config`], `heuristic` | how it is solved, and why so |
//! | [`lanes`] | which lane of a warp reads what |
//! | `level` | a level, and what becomes of a point in it |
//! | `texel` | element types: how values are weighed and summed |
//! | `line` | the parameters of a launch |
//! | `share`, `walk` | which queries, and in which order |
//! | `points` | points as they are given, and as they are worked out |
//! | `record` | what is handed on of a point, and how |
//! | `gather` | weighed sums of what lies around points |
//! | `plain`, `specialized`, `boxes` | the forms |
//! | `kernel` | the kernel of a class and a config |
//! | `reference` | points that are drawn; float64 |
//! | `op` | the op: from a call to a problem |
//! | `suite` | the problems it is measured at |
//! | `stored` | what stored tensors say of a problem |
//! | `table` | the test table |

mod boxes;
pub mod config;
mod gather;
mod heuristic;
mod kernel;
pub mod lanes;
mod level;
mod line;
mod op;
mod plain;
mod points;
pub mod problem;
mod record;
mod reference;
mod share;
mod specialized;
mod stored;
mod suite;
mod table;
mod texel;
mod walk;

pub use config::{Choice, Config, Form, Handed, Order, Share};
pub use lanes::Reads;
pub use problem::{Layout, Locations, Problem, Shapes};

use lanes::Lanes;
use share::Shares;
use walk::Walk;
use warpline_family::Op;
use warpline_family::error::FamilyError;
use warpline_family::family::{Case, Cost, Family, Place};
use warpline_family::plan::{Buffer, Plan, Step, TensorArg};
use warpline_family::program::Program;
use warpline_family::stored::{Asked, Stored};
use warpline_family::tensor::{HostTensor, TensorSpec};
use warpline_ir::{Kernel, Target};

/// The family.
#[derive(Clone, Copy, Debug)]
pub struct MsDeformAttn;

impl Family for MsDeformAttn {
    type Problem = Problem;
    type Choice = Choice;
    type Config = Config;

    const NAME: &'static str = "ms-deform-attn";
    const ABOUT: &'static str =
        "multi-scale deformable attention: weighed sums of points between pixels of several maps";

    fn default_problem(place: Place) -> Problem {
        match place {
            Place::Cpu => Problem::new(2, 77, 2, 4, &[[16, 12], [8, 6], [4, 3], [2, 2]]),
            Place::Gpu => Problem::new(2, 22223, 8, 4, &suite::DETR),
        }
    }

    fn check(p: &Problem) -> Result<(), FamilyError> {
        p.check()
    }

    fn config(p: &Problem, choice: &Choice, target: &Target) -> Result<Config, FamilyError> {
        heuristic::select(p, choice, target)
    }

    fn baseline(p: &Problem, choice: &Choice, target: &Target) -> Result<Config, FamilyError> {
        // No level is kept in shared memory, so that nothing synchronizes.
        let choice = Choice {
            form: choice.form.or(Some(Form::Plain)),
            held: choice.held.or(Some(0)),
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
        let orders: &[Order] = match u64::from(p.num_query) == p.spatial() {
            true => &[Order::Rows, Order::Strips],
            false => &[Order::Rows],
        };
        for &order in orders {
            for (warps, ahead) in [(15, 4), (19, 3), (19, 4)] {
                add(Choice {
                    form: Some(Form::Plain),
                    warps: Some(warps),
                    ahead: Some(ahead),
                    order: Some(order),
                    ..Choice::default()
                });
            }
            for (producers, copied) in [(2, false), (2, true), (3, false)] {
                add(Choice {
                    form: Some(Form::Specialized),
                    producers: Some(producers),
                    copied: Some(copied),
                    order: Some(order),
                    ..Choice::default()
                });
            }
        }
        for share in [Share::Parts, Share::Ranges] {
            add(Choice {
                share: Some(share),
                ..Choice::default()
            });
        }
        for held in [0, 1] {
            add(Choice {
                held: Some(held),
                ..Choice::default()
            });
        }
        all
    }

    fn plan(p: &Problem, c: &Config, target: &Target) -> Result<Plan, FamilyError> {
        let class = p.class();
        let lanes = Lanes::new(&class, c.reads, p.heads);
        let compiled_in = Config {
            parts: 0,
            ctas: 0,
            ..*c
        };
        let key = format!("{} {class:?} {lanes:?} {compiled_in:?}", Self::NAME);
        let kernel = Program::once(key, target, |target| {
            Kernel::build("ms_deform_attn", target, |k| {
                kernel::roles(k, &class, c, lanes)
            })
        })?;
        Plan::new(vec![step(kernel, p, c, &lanes)], 0)
    }

    fn cost(p: &Problem) -> Cost {
        let [value, .., locations, weights] = p.specs();
        let points = weights.elements() as f64;
        let once = [value, locations, weights, p.out()];
        Cost {
            // Four corners of every channel, multiplied and added.
            flops: 8.0 * points * f64::from(p.channels),
            bytes: once.iter().map(|spec| spec.bytes() as f64).sum(),
        }
    }

    fn inputs(p: &Problem) -> Vec<TensorSpec> {
        p.specs().into()
    }

    fn draw(p: &Problem, seed: u64) -> Vec<HostTensor> {
        reference::inputs(p, seed)
    }

    fn outputs(p: &Problem) -> Vec<TensorSpec> {
        vec![p.out()]
    }

    fn reference(p: &Problem, inputs: &[HostTensor]) -> Vec<Vec<(f64, f64)>> {
        vec![reference::reference(p, inputs)]
    }

    fn cases() -> Vec<Case<Problem, Choice>> {
        table::cases()
    }

    fn bench() -> Vec<(&'static str, Problem)> {
        suite::problems()
    }

    fn ops() -> Vec<Op<Self>> {
        vec![Op {
            signature: op::signature(),
            problem: op::asked,
            args: op::args,
        }]
    }

    fn period(p: &Problem) -> Option<Problem> {
        // Batches are alike.
        (p.batch > 1).then(|| Problem {
            batch: 1,
            ..p.clone()
        })
    }

    fn reduced(p: &Problem) -> Option<Problem> {
        let mut small = Problem {
            batch: p.batch.min(2),
            num_query: p.num_query.min(600),
            ..p.clone()
        };
        // Queries that are the pixels of the levels stay so: a walk may need it.
        if u64::from(p.num_query) == p.spatial() && small.num_query < p.num_query {
            let sides = p
                .shapes
                .0
                .iter()
                .map(|shape| shape.map(|side| side.div_ceil(8)));
            small.shapes = Shapes(sides.collect());
            small.spatial_size = None;
            small.num_query = small.spatial() as u32;
        }
        (small != *p).then_some(small)
    }

    fn learn(p: &mut Problem, asked: Asked<'_>, tensors: &dyn Stored) -> Result<(), FamilyError> {
        stored::learn(p, asked, tensors)
    }
}

/// The launch of a kernel.
fn step(kernel: Program, p: &Problem, c: &Config, lanes: &Lanes) -> Step {
    // All extents are less than 2³¹, as the problem has checked.
    let mut step = Step::new(kernel, [c.ctas, 1, 1])
        .pointer("value", Buffer::Input(0))
        .pointer("locations", Buffer::Input(3))
        .pointer("weights", Buffer::Input(4))
        .pointer("out", Buffer::Output(0))
        .scalar("spatial", p.spatial() as u32)
        .scalar("queries", p.num_query)
        .scalar("heads", p.heads)
        .divisor("of_batch", p.heads / lanes.heads * lanes.slices);
    if c.held > 0 {
        let row = u64::from(p.heads * p.channels);
        let rows = u64::from(p.batch).max(1) * p.spatial();
        step = step.tensor("pixels", TensorArg::dense(Buffer::Input(0), &[row, rows]));
    }
    if lanes.slices > 1 {
        step = step.divisor("of_slices", lanes.slices);
    }
    for (i, (shape, start)) in p.shapes.0.iter().zip(p.starts()).enumerate() {
        step = step
            .scalar(&format!("height_{i}"), shape[0])
            .scalar(&format!("width_{i}"), shape[1])
            .scalar(&format!("start_{i}"), start as u32);
    }
    step = Shares::bind_args(step, p, c, lanes);
    step = Walk::bind_args(step, p, c);
    step = specialized::bind_args(step, p, c, lanes);
    boxes::bind_args(step, p, c)
}
