//! Weaker scopes and memory orders.

use crate::edit::Edit;
use crate::sites::{KernelSites, Site};
use warpline_ir::{MemoryOrder, Op, Scope, Semantics};

/// Narrows a scope to the CTA.
pub(super) fn narrow_scope(sites: &KernelSites<'_>) -> Vec<Edit> {
    let narrow = |(site, op): (&Site<'_>, &Op)| {
        if !has_order(op) {
            return None;
        }
        let mut narrowed = op.clone();
        let scope = match &mut narrowed {
            Op::MbarrierArrive(o) => &mut o.scope,
            Op::MbarrierWait(o) => &mut o.scope,
            other => &mut order(other)?.scope,
        };
        if *scope == Scope::Cta {
            return None;
        }
        let was = scope.ptx();
        *scope = Scope::Cta;
        let text = format!("{} has scope cta, not {was}", sites.name(op));
        let mut draft = sites.draft(site);
        draft.op(narrowed);
        Some(sites.replace_with_draft(site, text, draft))
    };
    sites.ops().filter_map(narrow).collect()
}

/// Relaxes a release or an acquire.
pub(super) fn relax_order(sites: &KernelSites<'_>) -> Vec<Edit> {
    let relax = |(site, op): (&Site<'_>, &Op)| {
        if !has_order(op) {
            return None;
        }
        let mut relaxed = op.clone();
        match &mut relaxed {
            Op::ClusterArrive(o) if o.release => o.release = false,
            other => {
                let sem = &mut order(other)?.sem;
                if *sem == Semantics::Relaxed {
                    return None;
                }
                *sem = Semantics::Relaxed;
            }
        }
        let mut draft = sites.draft(site);
        draft.op(relaxed);
        Some(sites.replace_with_draft(site, format!("{} is relaxed", sites.name(op)), draft))
    };
    sites.ops().filter_map(relax).collect()
}

/// Returns whether an op can release or acquire.
fn has_order(op: &Op) -> bool {
    matches!(
        op,
        Op::MbarrierArrive(_)
            | Op::MbarrierWait(_)
            | Op::ClusterArrive(_)
            | Op::Atomic(_)
            | Op::AtomicReduce(_)
            | Op::StrongLoad(_)
            | Op::StrongStore(_)
    )
}

/// Returns the memory order of a strong access.
fn order(op: &mut Op) -> Option<&mut MemoryOrder> {
    match op {
        Op::Atomic(o) => Some(&mut o.order),
        Op::AtomicReduce(o) => Some(&mut o.order),
        Op::StrongLoad(o) => Some(&mut o.order),
        Op::StrongStore(o) => Some(&mut o.order),
        _ => None,
    }
}
