//! Waits that are missing, wait for fewer groups, or run on the wrong thread.

use crate::edit::Edit;
use crate::sites::{KernelSites, Site, any_op};
use warpline_ir::ops::bulk::BulkWait;
use warpline_ir::ops::compare::Cmp;
use warpline_ir::ops::copy::CopyWait;
use warpline_ir::ops::wgmma::WgmmaWait;
use warpline_ir::{Op, Operand, Special, Stmt, StmtKind};

/// Drops the wait of a cluster barrier, or an adjacent arrive and wait together.
pub(super) fn drop_cluster_barrier(sites: &KernelSites<'_>) -> Vec<Edit> {
    let mut edits = sites.drop_ops(|op| matches!(op, Op::ClusterWait(_)));
    for (site, op) in sites.ops() {
        let next = site.block.get(site.index + 1);
        let pair = matches!(op, Op::ClusterArrive(_))
            && next.is_some_and(|s| matches!(s.kind, StmtKind::Op(Op::ClusterWait(_))));
        if pair {
            let removed = site.splice(site.index..site.index + 2, Vec::new());
            edits.push(sites.edit(site, "no cluster barrier", vec![removed]));
        }
    }
    edits
}

/// Drops the `griddepcontrol.wait` of one role. A kernel with a single wait is left alone:
/// without it, the kernel is not a dependent launch.
pub(super) fn drop_dependency_wait(sites: &KernelSites<'_>) -> Vec<Edit> {
    let edits = sites.drop_ops(|op| matches!(op, Op::WaitPrerequisites(_)));
    if edits.len() < 2 { Vec::new() } else { edits }
}

/// Lets one more group stay in flight.
pub(super) fn leave_one_more_group(sites: &KernelSites<'_>) -> Vec<Edit> {
    let loose = |(site, op): (&Site<'_>, &Op)| {
        let (more, pending): (Op, u32) = match *op {
            Op::BulkWait(BulkWait { pending, read }) => {
                let pending = pending + 1;
                (BulkWait { pending, read }.into(), pending)
            }
            Op::WgmmaWait(WgmmaWait { pending }) => {
                let pending = pending + 1;
                (WgmmaWait { pending }.into(), pending)
            }
            Op::CopyWait(CopyWait { pending: Some(p) }) => {
                let pending = Some(p + 1);
                (CopyWait { pending }.into(), p + 1)
            }
            _ => return None,
        };
        let text = format!(
            "{} leaves {pending} in flight, not {}",
            sites.name(op),
            pending - 1
        );
        let mut draft = sites.draft(site);
        draft.op(more);
        Some(sites.replace_with_draft(site, text, draft))
    };
    sites.ops().filter_map(loose).collect()
}

/// Moves a bulk wait from the issuing lane to lane 1, or from the first warp to the second.
pub(super) fn move_bulk_wait(sites: &KernelSites<'_>) -> Vec<Edit> {
    let is_wait = |s: &Stmt| any_op(s, |op| matches!(op, Op::BulkWait(_)));
    let mut edits = Vec::new();
    for site in &sites.statements {
        match &site.stmt.kind {
            StmtKind::Elect { body } if !body.0.is_empty() && body.0.iter().all(is_wait) => {
                let mut draft = sites.draft(site);
                let lane = draft.read_special(Special::LaneId);
                let second = draft.compare(Cmp::Eq, lane.into(), Operand::imm(1u32));
                draft.if_(second, body.0.clone());
                edits.push(sites.replace_with_draft(
                    site,
                    "lane 1 waits for the bulk groups",
                    draft,
                ));
            }
            StmtKind::If { then, other, .. }
                if other.0.is_empty()
                    && matches!(&then.0[..], [s] if matches!(s.kind, StmtKind::Elect { .. }) && is_wait(s)) =>
            {
                let role = site.role.and_then(|r| sites.kernel.roles.get(r.index()));
                let Some(role) = role.filter(|r| r.warps > 1) else {
                    continue;
                };
                let mut draft = sites.draft(site);
                let warp = draft.read_special(Special::WarpId);
                let second = Operand::imm(role.first_warp + 1);
                let second = draft.compare(Cmp::Eq, warp.into(), second);
                draft.if_(second, then.0.clone());
                edits.push(sites.replace_with_draft(
                    site,
                    "the second warp waits for the bulk groups",
                    draft,
                ));
            }
            _ => {}
        }
    }
    edits
}
