//! Arrivals that are doubled, missing or counted wrongly.

use super::order::is_release;
use crate::edit::Edit;
use crate::sites::{KernelSites, Site};
use warpline_ir::ops::compare::Cmp;
use warpline_ir::ops::control::NamedSync;
use warpline_ir::ops::mbarrier::{MbarrierArrive, MbarrierInit};
use warpline_ir::{Op, Operand, Special, StmtKind};

/// Doubles an arrival.
pub(super) fn double_arrival(sites: &KernelSites<'_>) -> Vec<Edit> {
    let twice = |(site, op): (&Site<'_>, &Op)| {
        let Op::MbarrierArrive(arrive) = op else {
            return None;
        };
        let mut draft = sites.draft(site);
        draft.op(arrive.clone());
        draft.op(MbarrierArrive {
            tx: None,
            ..arrive.clone()
        });
        Some(sites.replace_with_draft(site, format!("{} twice", sites.name(op)), draft))
    };
    sites.ops().filter_map(twice).collect()
}

/// Lets every lane arrive instead of the elected one.
pub(super) fn arrive_in_all_lanes(sites: &KernelSites<'_>) -> Vec<Edit> {
    let all = |site: &Site<'_>| {
        let StmtKind::Elect { body } = &site.stmt.kind else {
            return None;
        };
        if !is_release(site.stmt) {
            return None;
        }
        let text = format!("all lanes: {}", sites.arrival(site.stmt)?);
        Some(sites.edit(site, text, vec![site.replace(body.0.clone())]))
    };
    sites.statements.iter().filter_map(all).collect()
}

/// Lets one warp or one lane arrive instead of every warp, every lane, or one lane per peer.
pub(super) fn arrive_in_one_warp_or_lane(sites: &KernelSites<'_>) -> Vec<Edit> {
    let few = |site: &Site<'_>| {
        let role = site.role.and_then(|r| sites.kernel.roles.get(r.index()))?;
        let mut draft = sites.draft(site);
        let who = match &site.stmt.kind {
            StmtKind::Elect { .. } if is_release(site.stmt) && role.warps > 1 => {
                let warp = draft.read_special(Special::WarpId);
                let first = Operand::imm(role.first_warp);
                let first = draft.compare(Cmp::Eq, warp.into(), first);
                draft.if_(first, vec![site.stmt.clone()]);
                "only the first warp"
            }
            // One lane per peer arrives.
            StmtKind::If { then, .. } if arrives_at_peers(&then.0) => {
                draft.elect(then.0.clone());
                "only one lane"
            }
            StmtKind::Op(Op::CopyArrive(_)) => {
                draft.elect(vec![site.stmt.clone()]);
                "only one lane"
            }
            _ => return None,
        };
        let text = format!("{who}: {}", sites.arrival(site.stmt)?);
        Some(sites.replace_with_draft(site, text, draft))
    };
    sites.statements.iter().filter_map(few).collect()
}

/// Returns whether each lane arrives at the mbarrier of a different peer.
fn arrives_at_peers(stmts: &[warpline_ir::Stmt]) -> bool {
    let peer = |s: &warpline_ir::Stmt| match &s.kind {
        StmtKind::Op(Op::MbarrierArrive(a)) => a.bar.peer.is_some_and(|p| p.as_reg().is_some()),
        _ => false,
    };
    stmts.iter().any(peer) && stmts.iter().all(|s| matches!(s.kind, StmtKind::Op(_)))
}

/// Adds one to the arrival count of an mbarrier.
pub(super) fn increment_count(sites: &KernelSites<'_>) -> Vec<Edit> {
    change_count(sites, |count| count.checked_add(1))
}

/// Subtracts one from an arrival count; a count of 0 is illegal.
pub(super) fn decrement_count(sites: &KernelSites<'_>) -> Vec<Edit> {
    change_count(sites, |count| count.checked_sub(1).filter(|n| *n > 0))
}

fn change_count(sites: &KernelSites<'_>, change: impl Fn(u32) -> Option<u32>) -> Vec<Edit> {
    let init = |(site, op): (&Site<'_>, &Op)| {
        let Op::MbarrierInit(MbarrierInit { bar, count }) = *op else {
            return None;
        };
        let changed = change(count)?;
        let text = format!("{} counts {changed} arrivals, not {count}", sites.name(op));
        let mut draft = sites.draft(site);
        draft.op(MbarrierInit {
            bar,
            count: changed,
        });
        Some(sites.replace_with_draft(site, text, draft))
    };
    sites.ops().filter_map(init).collect()
}

/// Changes the thread count of a named barrier by one warp.
pub(super) fn change_named_count(sites: &KernelSites<'_>) -> Vec<Edit> {
    let mut edits = Vec::new();
    for (site, op) in sites.ops() {
        let Op::NamedSync(NamedSync { bar, threads }) = *op else {
            continue;
        };
        // A thread count of 0 is illegal.
        let fewer = threads.checked_sub(32).filter(|n| *n > 0);
        for changed in [Some(threads + 32), fewer].into_iter().flatten() {
            let text = format!("{} counts {changed} threads, not {threads}", sites.name(op));
            let mut draft = sites.draft(site);
            draft.op(NamedSync {
                bar,
                threads: changed,
            });
            edits.push(sites.replace_with_draft(site, text, draft));
        }
    }
    edits
}
