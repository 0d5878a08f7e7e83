//! The launch.

use super::config::{Config, TileAssignment};
use super::problem::Problem;
use super::schedule;
use super::work::{MAX_TILES, TileScheduler};
use warpline_family::error::FamilyError;
use warpline_family::plan::{Buffer, LaunchStep, Plan};
use warpline_ir::{Kernel, Target};

/// The bytes of a work queue: two 32-bit words.
const QUEUE_BYTES: u64 = 8;

/// Returns the launch that solves the problem; nothing to compute needs none.
pub(super) fn plan(p: &Problem, c: &Config, target: &Target) -> Result<Plan, FamilyError> {
    if p.queries == 0 || p.heads == 0 || p.batch == 0 {
        return Plan::new(Vec::new(), 0);
    }
    let class = p.class();
    let name = format!("attention_{}", p.dim);
    let kernel = Kernel::build(&name, target, |k| schedule::declare(k, &class, c))?;
    let heads = u64::from(p.batch) * u64::from(p.heads);
    let tiles = heads * u64::from(p.queries.div_ceil(c.tile_rows()));
    if tiles > MAX_TILES {
        return Err(FamilyError::Problem(format!(
            "the problem has {tiles} tiles of queries; a launch has at most {MAX_TILES}"
        )));
    }
    let ctas = match c.tiles {
        TileAssignment::One => tiles as u32,
        // A CTA has all registers of an SM.
        _ => (tiles as u32).min(target.sms),
    };
    let step = LaunchStep::new(kernel, [ctas, 1, 1])
        .scalar("scale", (p.scale() * std::f64::consts::LOG2_E) as f32)
        .scalar("keys", p.keys);
    let mut step = TileScheduler::bind(step, p, c);
    if class.causal {
        let [ahead, lead] = p.diagonal();
        step = step.scalar("ahead", ahead).scalar("lead", lead);
    }
    let buffers = [0, 1, 2]
        .map(Buffer::Input)
        .into_iter()
        .chain([Buffer::Output(0)]);
    for (rows, buffer) in p.rows().iter().zip(buffers) {
        let o = Buffer::Output(0).into();
        let tensor = rows.tensor(buffer.into(), o, p.dtype.dtype());
        step = step.tensor(rows.name, tensor);
    }
    if class.lse {
        step = step
            .pointer("lse", Buffer::Output(1))
            .scalar("lse_len", heads * u64::from(p.queries))
            .scalar("queries", p.queries)
            .scalar("heads", p.heads);
    }
    let workspace = match c.tiles {
        TileAssignment::Queue => QUEUE_BYTES,
        _ => 0,
    };
    Plan::new(vec![step], workspace)
}
