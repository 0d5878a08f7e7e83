//! Roles that disagree on the number of iterations.

use super::order::is_release;
use crate::edit::{Edit, Splice};
use crate::sites::{KernelSites, Site, each_op, written_regs};
use std::collections::HashSet;
use warpline_ir::ops::compare::Cmp;
use warpline_ir::{Op, Operand, RegId, Stmt, StmtKind, Type};

/// Skips the first iteration of a loop that uses an mbarrier shared with another role.
pub(super) fn skip_first_iteration(sites: &KernelSites<'_>) -> Vec<Edit> {
    let short = |site: &Site<'_>| {
        let StmtKind::For {
            var,
            from,
            to,
            step,
            body,
            unroll,
        } = &site.stmt.kind
        else {
            return None;
        };
        let barrier = first_shared_barrier(sites, site)?;
        let mut draft = sites.draft(site);
        let ty = sites.kernel.ty(*var);
        let dst = draft.reg(ty);
        let (a, b) = (*from, *step);
        draft.op(warpline_ir::ops::arith::Add { ty, dst, a, b });
        draft.push(StmtKind::For {
            var: *var,
            from: dst.into(),
            to: *to,
            step: *step,
            body: body.clone(),
            unroll: *unroll,
        });
        let text = format!("the loop of {barrier} skips its first iteration");
        Some(sites.replace_with_draft(site, text, draft))
    };
    sites.statements.iter().filter_map(short).collect()
}

/// Names the first mbarrier of a loop that another role uses too.
fn first_shared_barrier(sites: &KernelSites<'_>, site: &Site<'_>) -> Option<String> {
    let mut shared = None;
    each_op(site.stmt, &mut |op| {
        shared = shared.or_else(|| sites.shared_barriers(op).first().copied())
    });
    shared.map(|bar| sites.kernel.barrier(bar).name.clone())
}

/// Drops a conditional arrival that follows a loop and releases the slots it still holds.
pub(super) fn drop_tail_release(sites: &KernelSites<'_>) -> Vec<Edit> {
    let tail = |site: &Site<'_>| {
        let is_loop = |s: &Stmt| matches!(s.kind, StmtKind::For { .. } | StmtKind::While { .. });
        let conditional = matches!(site.stmt.kind, StmtKind::If { .. });
        if !conditional || !is_release(site.stmt) || !site.block[..site.index].iter().any(is_loop) {
            return None;
        }
        let text = format!(
            "no release of {} after the loop",
            arrival_barrier(sites, site.stmt)?
        );
        Some(sites.edit(site, text, vec![site.replace(Vec::new())]))
    };
    sites.statements.iter().filter_map(tail).collect()
}

/// Names the mbarrier that a statement arrives at.
fn arrival_barrier(sites: &KernelSites<'_>, stmt: &Stmt) -> Option<String> {
    let mut name = None;
    each_op(stmt, &mut |op| {
        if let Op::MbarrierArrive(arrive) = op {
            name = Some(sites.kernel.barrier(arrive.bar.bar).name.clone());
        }
    });
    name
}

/// Skips an arrival next to a loop if the loop has no iteration. A conditional arrival may depend
/// on that already and is left alone.
pub(super) fn skip_arrival_of_empty_loop(sites: &KernelSites<'_>) -> Vec<Edit> {
    let skip = |site: &Site<'_>| {
        let is_inside_release = site.enclosing.last().is_some_and(|outer| is_release(outer));
        let conditional = matches!(site.stmt.kind, StmtKind::If { .. });
        if is_inside_release || conditional || !is_release(site.stmt) {
            return None;
        }
        // The bounds must be computed before the arrival.
        let later: HashSet<RegId> = site.block[site.index..]
            .iter()
            .flat_map(written_regs)
            .collect();
        let is_computed = |o: Operand| o.as_reg().is_none_or(|r| !later.contains(&r));
        let bounds = |s: &Stmt| match s.kind {
            StmtKind::For { var, from, to, .. }
                if sites.kernel.ty(var) == Type::U32 && is_computed(from) && is_computed(to) =>
            {
                Some((from, to))
            }
            _ => None,
        };
        let (from, to) = site.block.iter().find_map(bounds)?;
        let mut draft = sites.draft(site);
        let has_iteration = draft.compare(Cmp::Lt, from, to);
        draft.if_(has_iteration, vec![site.stmt.clone()]);
        let text = format!(
            "no arrival at {} for a tile without k-tiles",
            arrival_barrier(sites, site.stmt)?
        );
        Some(sites.replace_with_draft(site, text, draft))
    };
    sites.statements.iter().filter_map(skip).collect()
}

/// Skips an arrival in the first iteration of its loop.
pub(super) fn skip_first_arrival(sites: &KernelSites<'_>) -> Vec<Edit> {
    let skip = |site: &Site<'_>| {
        let is_inside_release = site.enclosing.last().is_some_and(|outer| is_release(outer));
        if is_inside_release || !is_release(site.stmt) {
            return None;
        }
        let is_loop = |s: &&Stmt| matches!(s.kind, StmtKind::For { .. } | StmtKind::While { .. });
        let n = site.enclosing.iter().rposition(is_loop)?;
        let (StmtKind::For { body, .. } | StmtKind::While { body, .. }) = &site.enclosing[n].kind
        else {
            return None;
        };
        let mut draft = sites.draft(site);
        let is_later = draft.reg(Type::Pred);
        draft.if_(is_later, vec![site.stmt.clone()]);
        let conditional = site.replace(std::mem::take(&mut draft.stmts));
        draft.set_pred(is_later, true);
        let end = body.0.len();
        let mut path = site.path.clone();
        path.arms.truncate(n + 1);
        let after = Splice {
            path,
            range: end..end,
            stmts: std::mem::take(&mut draft.stmts),
        };
        draft.set_pred(is_later, false);
        let (path, at) = site.enclosing_block(n);
        let before = Splice {
            path,
            range: at..at,
            stmts: draft.stmts,
        };
        let text = format!(
            "no arrival at {} in the first iteration",
            arrival_barrier(sites, site.stmt)?
        );
        let edit = sites.edit(site, text, vec![conditional, after, before]);
        Some(Edit {
            regs: draft.regs,
            ..edit
        })
    };
    sites.statements.iter().filter_map(skip).collect()
}
