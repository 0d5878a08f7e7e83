//! Order: releases that come too early.

use crate::case::{Case, Spot, any_op, each_op, read, tiles, written};
use crate::edit::Edit;
use warpline_check::Facts;
use warpline_ir::{Op, Stmt, StmtKind};

/// Does an op wait, or touch shared memory?
pub(super) fn acts(op: &Op) -> bool {
    let waits = matches!(
        op,
        Op::MbarrierWait(_)
            | Op::WgmmaWait(_)
            | Op::BulkWait(_)
            | Op::CopyWait(_)
            | Op::NamedSync(_)
            | Op::CtaSync(_)
            | Op::ClusterWait(_)
    );
    waits || tiles(&Facts::of(op)).next().is_some()
}

/// Is a statement nothing but an arrival, with what surrounds it?
pub(super) fn is_release(stmt: &Stmt) -> bool {
    any_op(stmt, |op| matches!(op, Op::MbarrierArrive(_))) && !any_op(stmt, acts)
}

/// Does a statement announce bytes?
fn expects(stmt: &Stmt) -> bool {
    any_op(
        stmt,
        |op| matches!(op, Op::MbarrierArrive(a) if a.tx.is_some()),
    )
}

/// What an arrival releases, or what it waited for, comes behind it. One that
/// announces bytes may well come before the copies, but not before the wait.
pub(super) fn release(c: &Case<'_>) -> Vec<Edit> {
    let swap = |spot: &Spot<'_>| {
        let inner = spot.around.last().is_some_and(|outer| is_release(outer));
        if inner || !is_release(spot.stmt) {
            return None;
        }
        let before = &spot.block[..spot.index];
        let j = if expects(spot.stmt) {
            let is_wait = |s: &Stmt| matches!(s.kind, StmtKind::Op(Op::MbarrierWait(_)));
            before.iter().rposition(is_wait)?
        } else {
            before.iter().rposition(|s| any_op(s, acts))?
        };
        let (late, rest) = spot.block[j..=spot.index].split_first()?;
        // Only the order of memory may change, not what is computed.
        let (writes, reads) = (written(late), read(late));
        let entangled = |s: &Stmt| {
            !read(s).is_disjoint(&writes)
                || !written(s).is_disjoint(&reads)
                || !written(s).is_disjoint(&writes)
        };
        if rest.iter().any(entangled) {
            return None;
        }
        let with = [rest, std::slice::from_ref(late)].concat();
        let text = format!("{} before {}", about(c, spot.stmt), about(c, late));
        Some(c.edit(spot, text, vec![spot.splice(j..spot.index + 1, with)]))
    };
    c.spots.iter().filter_map(swap).collect()
}

/// The last op of a statement that arrives or acts, by its name.
fn about(c: &Case<'_>, stmt: &Stmt) -> String {
    let mut name = String::new();
    each_op(stmt, &mut |op| {
        if acts(op) || matches!(op, Op::MbarrierArrive(_)) {
            name = c.name(op);
        }
    });
    match stmt.kind {
        StmtKind::For { .. } | StmtKind::While { .. } => format!("the loop of {name}"),
        _ => name,
    }
}
