//! Arrivals that come too early.

use crate::edit::Edit;
use crate::sites::{KernelSites, Site, any_op, each_op, read_regs, tiles, written_regs};
use warpline_check::Facts;
use warpline_ir::{Op, Stmt, StmtKind};

/// Returns whether an op waits or accesses shared memory.
pub(super) fn waits_or_accesses_shared(op: &Op) -> bool {
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

/// Returns whether a statement arrives at an mbarrier, and neither waits nor accesses shared memory.
pub(super) fn is_release(stmt: &Stmt) -> bool {
    any_op(stmt, |op| matches!(op, Op::MbarrierArrive(_)))
        && !any_op(stmt, waits_or_accesses_shared)
}

/// Returns whether an arrival of the statement expects transaction bytes.
fn expects_bytes(stmt: &Stmt) -> bool {
    any_op(
        stmt,
        |op| matches!(op, Op::MbarrierArrive(a) if a.tx.is_some()),
    )
}

/// Moves an arrival before the last wait or access that it must follow. An arrival that expects
/// transaction bytes may precede its copies, so it moves before the wait.
pub(super) fn release_early(sites: &KernelSites<'_>) -> Vec<Edit> {
    let swap = |site: &Site<'_>| {
        let is_inside_release = site.enclosing.last().is_some_and(|outer| is_release(outer));
        if is_inside_release || !is_release(site.stmt) {
            return None;
        }
        let before = &site.block[..site.index];
        let j = if expects_bytes(site.stmt) {
            let is_wait = |s: &Stmt| matches!(s.kind, StmtKind::Op(Op::MbarrierWait(_)));
            before.iter().rposition(is_wait)?
        } else {
            before
                .iter()
                .rposition(|s| any_op(s, waits_or_accesses_shared))?
        };
        let (late, rest) = site.block[j..=site.index].split_first()?;
        // The mutation must not change any register value.
        let (writes, reads) = (written_regs(late), read_regs(late));
        let has_dependence = |s: &Stmt| {
            !read_regs(s).is_disjoint(&writes)
                || !written_regs(s).is_disjoint(&reads)
                || !written_regs(s).is_disjoint(&writes)
        };
        if rest.iter().any(has_dependence) {
            return None;
        }
        let with = [rest, std::slice::from_ref(late)].concat();
        let text = format!(
            "{} before {}",
            describe(sites, site.stmt),
            describe(sites, late)
        );
        Some(sites.edit(site, text, vec![site.splice(j..site.index + 1, with)]))
    };
    sites.statements.iter().filter_map(swap).collect()
}

/// Names the last op of a statement that arrives, waits or accesses shared memory.
fn describe(sites: &KernelSites<'_>, stmt: &Stmt) -> String {
    let mut name = String::new();
    each_op(stmt, &mut |op| {
        if waits_or_accesses_shared(op) || matches!(op, Op::MbarrierArrive(_)) {
            name = sites.name(op);
        }
    });
    match stmt.kind {
        StmtKind::For { .. } | StmtKind::While { .. } => format!("the loop of {name}"),
        _ => name,
    }
}
