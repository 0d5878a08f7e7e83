//! Roles that disagree on the number of iterations.

use super::order::is_release;
use crate::edit::{Edit, Splice};
use crate::sites::{KernelSites, Site, each_op, written_regs};
use std::collections::HashSet;
use warpline_ir::ops::compare::Cmp;
use warpline_ir::{Op, Operand, RegId, Stmt, StmtKind, Type};

/// Skips the first iteration of a loop that uses an mbarrier shared with another role.
pub(super) fn skip_first_iteration(c: &KernelSites<'_>) -> Vec<Edit> {
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
        let met = first_shared_barrier(c, site)?;
        let mut draft = c.draft(site);
        let ty = c.kernel.ty(*var);
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
        let text = format!("the loop of {met} skips its first iteration");
        Some(c.replace_with_draft(site, text, draft))
    };
    c.sites.iter().filter_map(short).collect()
}

/// Names the first mbarrier of a loop that another role uses too.
fn first_shared_barrier(c: &KernelSites<'_>, site: &Site<'_>) -> Option<String> {
    let mut met = None;
    each_op(site.stmt, &mut |op| {
        met = met.or_else(|| c.shared_barriers(op).first().copied())
    });
    met.map(|bar| c.kernel.barrier(bar).name.clone())
}

/// Drops a conditional arrival that follows a loop and releases the slots it still holds.
pub(super) fn drop_tail_release(c: &KernelSites<'_>) -> Vec<Edit> {
    let tail = |site: &Site<'_>| {
        let is_loop = |s: &Stmt| matches!(s.kind, StmtKind::For { .. } | StmtKind::While { .. });
        let conditional = matches!(site.stmt.kind, StmtKind::If { .. });
        if !conditional || !is_release(site.stmt) || !site.block[..site.index].iter().any(is_loop) {
            return None;
        }
        let text = format!(
            "no release of {} after the loop",
            arrival_barrier(c, site.stmt)?
        );
        Some(c.edit(site, text, vec![site.replace(Vec::new())]))
    };
    c.sites.iter().filter_map(tail).collect()
}

/// Names the mbarrier that a statement arrives at.
fn arrival_barrier(c: &KernelSites<'_>, stmt: &Stmt) -> Option<String> {
    let mut name = None;
    each_op(stmt, &mut |op| {
        if let Op::MbarrierArrive(arrive) = op {
            name = Some(c.kernel.barrier(arrive.bar.bar).name.clone());
        }
    });
    name
}

/// Skips an arrival next to a loop if the loop has no iteration. A conditional arrival may depend
/// on that already and is left alone.
pub(super) fn skip_arrival_of_empty_loop(c: &KernelSites<'_>) -> Vec<Edit> {
    let skip = |site: &Site<'_>| {
        let inner = site.enclosing.last().is_some_and(|outer| is_release(outer));
        let conditional = matches!(site.stmt.kind, StmtKind::If { .. });
        if inner || conditional || !is_release(site.stmt) {
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
                if c.kernel.ty(var) == Type::U32 && is_computed(from) && is_computed(to) =>
            {
                Some((from, to))
            }
            _ => None,
        };
        let (from, to) = site.block.iter().find_map(bounds)?;
        let mut draft = c.draft(site);
        let any = draft.compare(Cmp::Lt, from, to);
        draft.if_(any, vec![site.stmt.clone()]);
        let text = format!(
            "no arrival at {} for a tile without k-tiles",
            arrival_barrier(c, site.stmt)?
        );
        Some(c.replace_with_draft(site, text, draft))
    };
    c.sites.iter().filter_map(skip).collect()
}

/// Skips an arrival in the first iteration of its loop.
pub(super) fn skip_first_arrival(c: &KernelSites<'_>) -> Vec<Edit> {
    let skip = |site: &Site<'_>| {
        let inner = site.enclosing.last().is_some_and(|outer| is_release(outer));
        if inner || !is_release(site.stmt) {
            return None;
        }
        let is_loop = |s: &&Stmt| matches!(s.kind, StmtKind::For { .. } | StmtKind::While { .. });
        let n = site.enclosing.iter().rposition(is_loop)?;
        let (StmtKind::For { body, .. } | StmtKind::While { body, .. }) = &site.enclosing[n].kind
        else {
            return None;
        };
        let mut draft = c.draft(site);
        let again = draft.reg(Type::Pred);
        draft.if_(again, vec![site.stmt.clone()]);
        let under = site.replace(std::mem::take(&mut draft.out));
        draft.set(again, true);
        let end = body.0.len();
        let mut path = site.path.clone();
        path.arms.truncate(n + 1);
        let after = Splice {
            path,
            range: end..end,
            with: std::mem::take(&mut draft.out),
        };
        draft.set(again, false);
        let (path, at) = site.outer(n);
        let before = Splice {
            path,
            range: at..at,
            with: draft.out,
        };
        let text = format!(
            "no arrival at {} in the first iteration",
            arrival_barrier(c, site.stmt)?
        );
        let edit = c.edit(site, text, vec![under, after, before]);
        Some(Edit {
            regs: draft.regs,
            ..edit
        })
    };
    c.sites.iter().filter_map(skip).collect()
}
