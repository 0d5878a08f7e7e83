//! Rounds: roles that disagree how often something is done.

use super::order::is_release;
use crate::case::{Case, Spot, each_op, written};
use crate::edit::{Edit, Splice};
use std::collections::HashSet;
use warpline_ir::ops::compare::Cmp;
use warpline_ir::{Op, Operand, RegId, Stmt, StmtKind, Type};

/// A loop that begins a round late, where it meets another role.
pub(super) fn short(c: &Case<'_>) -> Vec<Edit> {
    let short = |spot: &Spot<'_>| {
        let StmtKind::For {
            var,
            from,
            to,
            step,
            body,
            unroll,
        } = &spot.stmt.kind
        else {
            return None;
        };
        let met = first_met(c, spot)?;
        let mut draft = c.draft(spot);
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
        let text = format!("the loop of {met} leaves out its first round");
        Some(c.drafted(spot, text, draft))
    };
    c.spots.iter().filter_map(short).collect()
}

/// The first barrier at which a loop meets another role, by its name.
fn first_met(c: &Case<'_>, spot: &Spot<'_>) -> Option<String> {
    let mut met = None;
    each_op(spot.stmt, &mut |op| {
        met = met.or_else(|| c.meetings(op).first().copied())
    });
    met.map(|bar| c.kernel.barrier(bar).name.clone())
}

/// The release of what a loop still held, left out.
pub(super) fn tail(c: &Case<'_>) -> Vec<Edit> {
    let tail = |spot: &Spot<'_>| {
        let behind_a_loop =
            |s: &Stmt| matches!(s.kind, StmtKind::For { .. } | StmtKind::While { .. });
        let conditional = matches!(spot.stmt.kind, StmtKind::If { .. });
        if !conditional
            || !is_release(spot.stmt)
            || !spot.block[..spot.index].iter().any(behind_a_loop)
        {
            return None;
        }
        let text = format!("no release of {} behind the loop", released(c, spot.stmt)?);
        Some(c.edit(spot, text, vec![spot.replace(Vec::new())]))
    };
    c.spots.iter().filter_map(tail).collect()
}

/// The barrier a statement arrives at, by its name.
fn released(c: &Case<'_>, stmt: &Stmt) -> Option<String> {
    let mut name = None;
    each_op(stmt, &mut |op| {
        if let Op::MbarrierArrive(arrive) = op {
            name = Some(c.kernel.barrier(arrive.bar.bar).name.clone());
        }
    });
    name
}

/// An arrival beside a loop is made only if the loop has rounds. One under a
/// condition of its own may depend on that already.
pub(super) fn empty(c: &Case<'_>) -> Vec<Edit> {
    let skip = |spot: &Spot<'_>| {
        let inner = spot.around.last().is_some_and(|outer| is_release(outer));
        let conditional = matches!(spot.stmt.kind, StmtKind::If { .. });
        if inner || conditional || !is_release(spot.stmt) {
            return None;
        }
        // The bounds must be known where the arrival stands.
        let later: HashSet<RegId> = spot.block[spot.index..].iter().flat_map(written).collect();
        let known = |o: Operand| o.as_reg().is_none_or(|r| !later.contains(&r));
        let bounds = |s: &Stmt| match s.kind {
            StmtKind::For { var, from, to, .. }
                if c.kernel.ty(var) == Type::U32 && known(from) && known(to) =>
            {
                Some((from, to))
            }
            _ => None,
        };
        let (from, to) = spot.block.iter().find_map(bounds)?;
        let mut draft = c.draft(spot);
        let any = draft.compare(Cmp::Lt, from, to);
        draft.if_(any, vec![spot.stmt.clone()]);
        let text = format!(
            "no arrival at {} for a tile without steps",
            released(c, spot.stmt)?
        );
        Some(c.drafted(spot, text, draft))
    };
    c.spots.iter().filter_map(skip).collect()
}

/// An arrival inside a loop is not made in the first round.
pub(super) fn first(c: &Case<'_>) -> Vec<Edit> {
    let skip = |spot: &Spot<'_>| {
        let inner = spot.around.last().is_some_and(|outer| is_release(outer));
        if inner || !is_release(spot.stmt) {
            return None;
        }
        let is_loop = |s: &&Stmt| matches!(s.kind, StmtKind::For { .. } | StmtKind::While { .. });
        let n = spot.around.iter().rposition(is_loop)?;
        let (StmtKind::For { body, .. } | StmtKind::While { body, .. }) = &spot.around[n].kind
        else {
            return None;
        };
        let mut draft = c.draft(spot);
        let again = draft.reg(Type::Pred);
        draft.if_(again, vec![spot.stmt.clone()]);
        let under = spot.replace(std::mem::take(&mut draft.out));
        draft.set(again, true);
        let end = body.0.len();
        let mut path = spot.path.clone();
        path.arms.truncate(n + 1);
        let after = Splice {
            path,
            range: end..end,
            with: std::mem::take(&mut draft.out),
        };
        draft.set(again, false);
        let (path, at) = spot.outer(n);
        let before = Splice {
            path,
            range: at..at,
            with: draft.out,
        };
        let text = format!(
            "no arrival at {} in the first round",
            released(c, spot.stmt)?
        );
        let edit = c.edit(spot, text, vec![under, after, before]);
        Some(Edit {
            regs: draft.regs,
            ..edit
        })
    };
    c.spots.iter().filter_map(skip).collect()
}
