//! The launch that leads to a diagnostic: values that satisfy the decisions of the search.

use super::launched;
use super::state::Env;
use crate::replay::{LaunchValues, MemoryFill, MemoryWord, buffer_address, buffer_at};
use crate::symbolic::{Model, Node, Question};
use warpline_ir::ParamKind;

/// The most CTAs of a grid along an axis that are run.
const MOST_CTAS: i128 = 64;

/// LaunchValues for which decisions hold, as far as some are found.
pub(super) fn values(env: &Env<'_>, decisions: &[(Question, bool)]) -> LaunchValues {
    let kernel = env.kernel;
    let mut fixed = Model::default();
    for (i, param) in kernel.params.iter().enumerate() {
        let term = env.terms.find(&Node::Param(i as u32));
        if let (Some(term), Some(base)) = (term, buffer_address(kernel, i))
            && matches!(param.kind, ParamKind::Pointer(_))
        {
            fixed.values.insert(term, base);
        }
    }
    let limits = launched::limits(&env.terms, kernel);
    let model = env.terms.model(decisions, &limits.ranges, &fixed);
    let mut values = LaunchValues {
        grid: kernel.cluster,
        scalars: vec![None; kernel.params.len()],
        words: Vec::new(),
        fill: MemoryFill::Same(0),
        follows_search: !model.is_violated,
    };
    for (&term, &value) in &model.values {
        match env.terms.node(term) {
            Node::Param(p) => {
                let is_scalar = matches!(kernel.params[p as usize].kind, ParamKind::Scalar(_));
                values.scalars[p as usize] = is_scalar.then_some(value);
            }
            Node::Special(name) => of_grid(&mut values.grid, kernel.cluster, &name, value),
            Node::Global(at, ty) => {
                let at = env.terms.evaluate(&model, at);
                if let Some((param, byte)) = at.and_then(|at| buffer_at(kernel, at)) {
                    values.words.push(MemoryWord {
                        param,
                        byte,
                        ty,
                        value,
                    });
                }
            }
            _ => {}
        }
    }
    values
}

/// The grid has the CTA or the extent that was decided on.
fn of_grid(grid: &mut [u32; 3], cluster: [u32; 3], name: &str, value: i128) {
    let Some((what, axis)) = name.split_once('.') else {
        return;
    };
    let Some(axis) = axis.parse().ok().filter(|&a: &usize| a < 3) else {
        return;
    };
    let each = i128::from(cluster[axis]);
    let ctas = match what {
        "cta" => value + each,
        "grid" => value,
        "cluster" => (value + 1) * each,
        "clusters" => value * each,
        _ => return,
    };
    let ctas = ctas.clamp(each, MOST_CTAS / each * each.max(1)) as u32;
    grid[axis] = grid[axis].max(ctas.next_multiple_of(cluster[axis]));
}
