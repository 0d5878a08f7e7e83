//! Arrivals by too many, by too few, and counts that expect others.

use super::order::is_release;
use crate::case::{Case, Spot};
use crate::edit::Edit;
use warpline_ir::ops::compare::Cmp;
use warpline_ir::ops::control::NamedSync;
use warpline_ir::ops::mbarrier::{MbarrierArrive, MbarrierInit};
use warpline_ir::{Op, Operand, Special, StmtKind};

/// Arrives once more.
pub(super) fn twice(c: &Case<'_>) -> Vec<Edit> {
    let twice = |(spot, op): (&Spot<'_>, &Op)| {
        let Op::MbarrierArrive(arrive) = op else {
            return None;
        };
        let mut draft = c.draft(spot);
        draft.op(arrive.clone());
        draft.op(MbarrierArrive {
            tx: None,
            ..arrive.clone()
        });
        Some(c.drafted(spot, format!("{} twice", c.name(op)), draft))
    };
    c.ops().filter_map(twice).collect()
}

/// What an elected lane did alone, every lane does.
pub(super) fn all_lanes(c: &Case<'_>) -> Vec<Edit> {
    let all = |spot: &Spot<'_>| {
        let StmtKind::Elect { body } = &spot.stmt.kind else {
            return None;
        };
        if !is_release(spot.stmt) {
            return None;
        }
        let text = format!("all lanes: {}", c.arrival(spot.stmt)?);
        Some(c.edit(spot, text, vec![spot.replace(body.0.clone())]))
    };
    c.spots.iter().filter_map(all).collect()
}

/// What each warp, each lane or a lane for each peer did, one does.
pub(super) fn few(c: &Case<'_>) -> Vec<Edit> {
    let few = |spot: &Spot<'_>| {
        let role = spot.role.and_then(|r| c.kernel.roles.get(r.index()))?;
        let mut draft = c.draft(spot);
        let who = match &spot.stmt.kind {
            StmtKind::Elect { .. } if is_release(spot.stmt) && role.warps > 1 => {
                let warp = draft.special(Special::WarpId);
                let first = Operand::imm(role.first_warp);
                let first = draft.compare(Cmp::Eq, warp.into(), first);
                draft.if_(first, vec![spot.stmt.clone()]);
                "the first warp alone"
            }
            // A lane for each peer.
            StmtKind::If { then, .. } if to_peers(&then.0) => {
                draft.elect(then.0.clone());
                "one lane alone"
            }
            StmtKind::Op(Op::CopyArrive(_)) => {
                draft.elect(vec![spot.stmt.clone()]);
                "one lane alone"
            }
            _ => return None,
        };
        let text = format!("{who}: {}", c.arrival(spot.stmt)?);
        Some(c.drafted(spot, text, draft))
    };
    c.spots.iter().filter_map(few).collect()
}

/// Does each lane arrive at a peer of its own?
fn to_peers(stmts: &[warpline_ir::Stmt]) -> bool {
    let peer = |s: &warpline_ir::Stmt| match &s.kind {
        StmtKind::Op(Op::MbarrierArrive(a)) => a.bar.peer.is_some_and(|p| p.as_reg().is_some()),
        _ => false,
    };
    stmts.iter().any(peer) && stmts.iter().all(|s| matches!(s.kind, StmtKind::Op(_)))
}

/// An init that expects one more.
pub(super) fn more(c: &Case<'_>) -> Vec<Edit> {
    init(c, |count| count.checked_add(1))
}

/// An init that expects one fewer; none at all is no count.
pub(super) fn fewer(c: &Case<'_>) -> Vec<Edit> {
    init(c, |count| count.checked_sub(1).filter(|n| *n > 0))
}

fn init(c: &Case<'_>, change: impl Fn(u32) -> Option<u32>) -> Vec<Edit> {
    let init = |(spot, op): (&Spot<'_>, &Op)| {
        let Op::MbarrierInit(MbarrierInit { bar, count }) = *op else {
            return None;
        };
        let changed = change(count)?;
        let text = format!("{} of {changed} arrivals, not {count}", c.name(op));
        let mut draft = c.draft(spot);
        draft.op(MbarrierInit {
            bar,
            count: changed,
        });
        Some(c.drafted(spot, text, draft))
    };
    c.ops().filter_map(init).collect()
}

/// A named barrier that one side counts otherwise.
pub(super) fn named(c: &Case<'_>) -> Vec<Edit> {
    let mut edits = Vec::new();
    for (spot, op) in c.ops() {
        let Op::NamedSync(NamedSync { bar, threads }) = *op else {
            continue;
        };
        // None at all would be no barrier.
        let fewer = threads.checked_sub(32).filter(|n| *n > 0);
        for changed in [Some(threads + 32), fewer].into_iter().flatten() {
            let text = format!("{} of {changed} threads, not {threads}", c.name(op));
            let mut draft = c.draft(spot);
            draft.op(NamedSync {
                bar,
                threads: changed,
            });
            edits.push(c.drafted(spot, text, draft));
        }
    }
    edits
}
