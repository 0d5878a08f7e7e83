//! The launch.

use super::config::{Config, TileAssignment};
use super::problem::{PITCH_BYTES, Problem};
use super::schedule;
use super::scores::ScoreRules;
use super::work::TileScheduler;
use warpline_family::error::FamilyError;
use warpline_family::plan::{Address, Buffer, LaunchStep, Plan};
use warpline_ir::{Kernel, Target};

/// The bytes of a work queue: two 32-bit words.
const QUEUE_BYTES: u64 = 8;
/// K and V without keys have a row of zeros behind the work queue: the kernel loads it and masks it.
pub(super) const ZEROS: Address = Address {
    buffer: Buffer::Workspace,
    offset: PITCH_BYTES,
};

/// Returns the launch that solves the problem; nothing to compute needs none.
pub(super) fn plan(p: &Problem, c: &Config, target: &Target) -> Result<Plan, FamilyError> {
    if p.queries == 0 || p.heads == 0 || p.batch == 0 {
        return Plan::new(Vec::new(), 0);
    }
    let class = p.class();
    let name = format!("attention_{}", p.dim);
    let kernel = Kernel::build(&name, target, |k| schedule::declare(k, &class, c))?;
    let step = LaunchStep::new(kernel, [c.grid_ctas(p)?, 1, 1]).scalar("keys", p.keys);
    let step = TileScheduler::bind(step, p, c);
    let step = p.mask().bind(step);
    let mut step = ScoreRules::bind(step, p, &p.inputs())?;
    let buffers = [0, 1, 2]
        .map(Buffer::Input)
        .into_iter()
        .chain([Buffer::Output(0)]);
    for (rows, buffer) in p.rows().iter().zip(buffers) {
        let tensor = rows.tensor(buffer.into(), ZEROS, p.dtype.dtype());
        step = step.tensor(rows.name, tensor);
    }
    if class.lse || class.bias.is_some() {
        step = step.scalar("queries", p.queries);
    }
    if class.lse {
        let lse_len = u64::from(p.batch) * u64::from(p.heads) * u64::from(p.queries);
        step = step
            .pointer("lse", Buffer::Output(1))
            .scalar("lse_len", lse_len)
            .scalar("heads", p.heads);
    }
    let workspace = match c.tiles {
        _ if p.keys == 0 => ZEROS.offset + PITCH_BYTES,
        TileAssignment::Queue => QUEUE_BYTES,
        _ => 0,
    };
    Plan::new(vec![step], workspace)
}
