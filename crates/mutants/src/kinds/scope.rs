//! Scope and order of releases and acquires.

use crate::case::{Case, Spot};
use crate::edit::Edit;
use warpline_ir::{MemoryOrder, Op, Scope, Semantics};

/// The CTA alone is reached.
pub(super) fn narrow(c: &Case<'_>) -> Vec<Edit> {
    let narrow = |(spot, op): (&Spot<'_>, &Op)| {
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
        let text = format!("{} reaches the CTA, not the {was}", c.name(op));
        let mut draft = c.draft(spot);
        draft.op(narrowed);
        Some(c.drafted(spot, text, draft))
    };
    c.ops().filter_map(narrow).collect()
}

/// Nothing is ordered.
pub(super) fn relax(c: &Case<'_>) -> Vec<Edit> {
    let relax = |(spot, op): (&Spot<'_>, &Op)| {
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
        let mut draft = c.draft(spot);
        draft.op(relaxed);
        Some(c.drafted(spot, format!("{} is relaxed", c.name(op)), draft))
    };
    c.ops().filter_map(relax).collect()
}

/// Does an op release or acquire?
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

/// The order of a strong access.
fn order(op: &mut Op) -> Option<&mut MemoryOrder> {
    match op {
        Op::Atomic(o) => Some(&mut o.order),
        Op::AtomicReduce(o) => Some(&mut o.order),
        Op::StrongLoad(o) => Some(&mut o.order),
        Op::StrongStore(o) => Some(&mut o.order),
        _ => None,
    }
}
