//! Waits that are gone, that wait for less, or that the wrong thread does.

use crate::case::{Case, Spot, any_op};
use crate::edit::Edit;
use warpline_ir::ops::bulk::BulkWait;
use warpline_ir::ops::compare::Cmp;
use warpline_ir::ops::copy::CopyWait;
use warpline_ir::ops::wgmma::WgmmaWait;
use warpline_ir::{Op, Operand, Special, Stmt, StmtKind};

/// The cluster's barrier: both halves left out where they stand side by side, or the wait alone.
pub(super) fn cluster(c: &Case<'_>) -> Vec<Edit> {
    let mut edits = c.without(|op| matches!(op, Op::ClusterWait(_)));
    for (spot, op) in c.ops() {
        let next = spot.block.get(spot.index + 1);
        let pair = matches!(op, Op::ClusterArrive(_))
            && next.is_some_and(|s| matches!(s.kind, StmtKind::Op(Op::ClusterWait(_))));
        if pair {
            let both = spot.splice(spot.index..spot.index + 2, Vec::new());
            edits.push(c.edit(spot, "no barrier of the cluster", vec![both]));
        }
    }
    edits
}

/// One role of several that wait for the grid before. With a single wait
/// gone, nothing would tell that there is a grid before.
pub(super) fn prerequisites(c: &Case<'_>) -> Vec<Edit> {
    let edits = c.without(|op| matches!(op, Op::WaitPrerequisites(_)));
    if edits.len() < 2 { Vec::new() } else { edits }
}

/// One group more may stay open.
pub(super) fn loose(c: &Case<'_>) -> Vec<Edit> {
    let loose = |(spot, op): (&Spot<'_>, &Op)| {
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
        let text = format!("{} leaves {pending} open, not {}", c.name(op), pending - 1);
        let mut draft = c.draft(spot);
        draft.op(more);
        Some(c.drafted(spot, text, draft))
    };
    c.ops().filter_map(loose).collect()
}

/// Lane 1 waits for what the elected lane issued, or the second warp for what the first did.
pub(super) fn other(c: &Case<'_>) -> Vec<Edit> {
    let is_wait = |s: &Stmt| any_op(s, |op| matches!(op, Op::BulkWait(_)));
    let mut edits = Vec::new();
    for spot in &c.spots {
        match &spot.stmt.kind {
            StmtKind::Elect { body } if !body.0.is_empty() && body.0.iter().all(is_wait) => {
                let mut draft = c.draft(spot);
                let lane = draft.special(Special::LaneId);
                let second = draft.compare(Cmp::Eq, lane.into(), Operand::imm(1u32));
                draft.if_(second, body.0.clone());
                edits.push(c.drafted(spot, "lane 1 waits for the bulk groups", draft));
            }
            StmtKind::If { then, other, .. }
                if other.0.is_empty()
                    && matches!(&then.0[..], [s] if matches!(s.kind, StmtKind::Elect { .. }) && is_wait(s)) =>
            {
                let role = spot.role.and_then(|r| c.kernel.roles.get(r.index()));
                let Some(role) = role.filter(|r| r.warps > 1) else {
                    continue;
                };
                let mut draft = c.draft(spot);
                let warp = draft.special(Special::WarpId);
                let second = Operand::imm(role.first_warp + 1);
                let second = draft.compare(Cmp::Eq, warp.into(), second);
                draft.if_(second, then.0.clone());
                edits.push(c.drafted(spot, "the second warp waits for the bulk groups", draft));
            }
            _ => {}
        }
    }
    edits
}
