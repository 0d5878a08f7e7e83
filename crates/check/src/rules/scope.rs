//! R18, the scope of words that the CTAs of a grid share.

use super::follows::Follows;
use super::{Case, OpSite};
use crate::refusal::{Findings, Rule};
use std::collections::HashSet;
use warpline_ir::{At, MemoryOrder, Op, Operand, Scope, Special};

pub(super) const SCOPE: Rule = Rule {
    code: "R18.scope",
    holds: "a word of global memory that all CTAs reach is read and updated at the scope of the device",
};

/// Looks at every strong access but those that were refused already.
pub(super) fn judge<'k>(case: &Case<'k>, told: &HashSet<usize>, found: &mut Findings<'k>) {
    let narrow: Vec<_> = (case.ops.iter())
        .filter_map(|op| Some((op, strong(op)?)))
        .filter(|(op, (_, order))| order.scope < Scope::Gpu && !told.contains(&op.id))
        .collect();
    // A kernel that never asks where it is has one CTA, or means all to do the same.
    if narrow.is_empty() || !case.ops.iter().any(names_grid) {
        return;
    }
    let own = Follows::of(case, differs);
    for (op, (addr, order)) in narrow {
        if !own.operand(addr) {
            let text = format!(
                "the address is the same in every CTA, and the scope of {} is the {}: other CTAs may not see it, nor it them",
                op.op.name(),
                order.scope.ptx(),
            );
            found.refuse(&SCOPE, op.loc(), op.site.role, text);
        }
    }
}

/// A strong access of global memory: its address and its order.
fn strong(op: &OpSite) -> Option<(Operand, MemoryOrder)> {
    let (at, order) = match op.op {
        Op::Atomic(o) => (o.at, o.order),
        Op::Reduce(o) => (o.at, o.order),
        Op::StrongLoad(o) => (o.at, o.order),
        Op::StrongStore(o) => (o.at, o.order),
        _ => return None,
    };
    match at {
        At::Global { addr, .. } => Some((addr, order)),
        At::Shared(_) => None,
    }
}

/// Does an op ask for the grid, or for a place in it?
fn names_grid(op: &OpSite) -> bool {
    use Special::{ClusterId, CtaId, GridClusters, GridDim};
    let named = |s| matches!(s, CtaId(_) | ClusterId(_) | GridDim(_) | GridClusters(_));
    matches!(op.op, Op::ReadSpecial(o) if named(o.which))
}

/// Can an op give something else in another CTA, by itself?
fn differs(op: &OpSite) -> bool {
    use Special::{ClusterDim, ClusterSize, GridClusters, GridDim, LaneId, SmCount, Tid, WarpId};
    match op.op {
        Op::ReadSpecial(o) => !matches!(
            o.which,
            Tid | LaneId
                | WarpId
                | GridDim(_)
                | GridClusters(_)
                | ClusterDim(_)
                | ClusterSize
                | SmCount
        ),
        _ => !op.facts.touches.is_empty(),
    }
}
