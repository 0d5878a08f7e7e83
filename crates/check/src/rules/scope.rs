//! R18, the scope of accesses to words that all CTAs share.

use super::dependents::Dependents;
use super::{OpSite, RuleContext};
use crate::codes;
use crate::diagnostic::{Findings, Message, Rule};
use std::collections::HashSet;
use warpline_ir::{MemoryAddress, MemoryOrder, Op, Operand, Scope, Special};

pub(super) const SCOPE: Rule = codes::R18_SCOPE;

/// Checks every strong access that was not reported already.
pub(super) fn check<'k>(cx: &RuleContext<'k>, reported: &HashSet<usize>, found: &mut Findings<'k>) {
    let narrow: Vec<_> = (cx.ops.iter())
        .filter_map(|op| Some((op, strong_access(op)?)))
        .filter(|(op, (_, order))| order.scope < Scope::Gpu && !reported.contains(&op.id))
        .collect();
    // A kernel that reads no grid position has one CTA, or all CTAs do the same on purpose.
    if narrow.is_empty() || !cx.ops.iter().any(names_grid) {
        return;
    }
    let by_cta = Dependents::of(cx, differs_between_ctas);
    for (op, (addr, order)) in narrow {
        if !by_cta.operand(addr) {
            let text = Message::new(format!(
                "`{}` has {} scope, and its address is the same in every CTA",
                op.op.name(),
                order.scope.ptx(),
            ))
            .cause("other CTAs may not see this access, and it may not see theirs");
            found.report(&SCOPE, op.loc(), op.site.role, text);
        }
    }
}

/// Returns the address and the memory order of a strong access to global memory.
fn strong_access(op: &OpSite) -> Option<(Operand, MemoryOrder)> {
    let (at, order) = match op.op {
        Op::Atomic(o) => (o.at, o.order),
        Op::AtomicReduce(o) => (o.at, o.order),
        Op::StrongLoad(o) => (o.at, o.order),
        Op::StrongStore(o) => (o.at, o.order),
        _ => return None,
    };
    match at {
        MemoryAddress::Global { addr, .. } => Some((addr, order)),
        MemoryAddress::Shared(_) => None,
    }
}

/// Does an op read the grid size or a position in the grid?
fn names_grid(op: &OpSite) -> bool {
    use Special::{ClusterId, CtaId, GridClusters, GridDim};
    let named = |s| matches!(s, CtaId(_) | ClusterId(_) | GridDim(_) | GridClusters(_));
    matches!(op.op, Op::ReadSpecial(o) if named(o.which))
}

/// Can the result of an op differ between CTAs, by itself?
fn differs_between_ctas(op: &OpSite) -> bool {
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
