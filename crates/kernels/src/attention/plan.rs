//! The launch.

use super::combine;
use super::config::Config;
use super::context::needs_queries;
use super::mask::MaskParams;
use super::output::Output;
use super::problem::Problem;
use super::rows::Rows;
use super::schedule;
use super::scores::ScoreRules;
use super::sequence::{PageTable, Sequences};
use super::spans::Spans;
use super::tile_table;
use super::work::TileScheduler;
use super::workspace::{Workspace, ZEROS};
use half::bf16;
use warpline_family::error::FamilyError;
use warpline_family::plan::{Buffer, LaunchStep, Plan, TensorArg};
use warpline_ir::{Kernel, Target};

/// Returns the launch that solves the problem; nothing to compute needs none.
pub(super) fn plan(p: &Problem, c: &Config, target: &Target) -> Result<Plan, FamilyError> {
    if p.queries == 0 || p.heads == 0 || p.batch == 0 {
        return Plan::new(Vec::new(), 0);
    }
    let class = c.class(p);
    let name = format!("attention_{}", p.dim);
    let kernel = Kernel::build(&name, target, |k| schedule::declare(k, &class, c))?;
    let inputs = p.inputs();
    let step = LaunchStep::new(kernel, [c.grid_ctas(p)?, 1, 1]).scalar("keys", p.max_keys());
    let step = TileScheduler::bind(step, p, c);
    let step = MaskParams::bind(step, p);
    let mut step = ScoreRules::bind(step, p, c, &inputs)?;
    let workspace = Workspace::of(p, c);
    if class.sequences.is_some() {
        step = Sequences::bind(step, p, workspace.table)?;
        step = PageTable::bind(step, p, &inputs)?;
    }
    let [q, k, v, _] = p.rows();
    step = step.tensor("q", q_tensor(p, c, &q));
    for (rows, input) in [(k, 1), (v, 2)] {
        let (at, dtype) = (Buffer::Input(input).into(), p.dtype.dtype());
        step = match class.sequences.filter(|class| class.key_lens.is_some()) {
            None => step.tensor(rows.name, rows.tensor(at, ZEROS, dtype)),
            Some(_) => Spans::bind(step, &rows, at, ZEROS, dtype)?,
        };
    }
    if needs_queries(&class, c) {
        step = step.scalar("queries", p.queries);
    }
    let step = Output::<bf16>::bind(step, p, c, &workspace)?;
    let mut steps = vec![step];
    if p.packed_queries {
        steps.insert(0, tile_table::launch(p, c, &workspace, target)?);
    }
    if c.is_split() {
        steps.push(combine::launch(p, c, &workspace, target)?);
    }
    Plan::new(steps, workspace.bytes)
}

/// Returns the tensor of Q; if tiles have several heads, its heads come before its rows.
fn q_tensor(p: &Problem, c: &Config, q: &Rows) -> TensorArg {
    let mut tensor = q.tensor(Buffer::Input(0).into(), ZEROS, p.dtype.dtype());
    if c.tile_heads > 1 {
        tensor.extents.swap(1, 2);
        tensor
            .strides
            .iter_mut()
            .for_each(|strides| strides.swap(0, 1));
    }
    tensor
}
