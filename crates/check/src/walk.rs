//! Every statement of a kernel, with the threads that reach it together.

use crate::uniform::Uniformity;
use warpline_ir::{Block, Kernel, Loc, RoleId, Stmt, StmtKind, Uniform};

/// A statement and its surroundings.
#[derive(Clone, Copy, Debug)]
pub struct StmtSite<'k> {
    /// The statement.
    pub stmt: &'k Stmt,
    /// The role; `None` for the prologue and the epilogue, which every thread runs.
    pub role: Option<RoleId>,
    /// The threads that reach the statement together.
    pub reach: Uniform,
    /// The enclosing statement at which the other threads diverged.
    pub split: Option<DivergencePoint>,
    /// Does one elected lane of each warp run the statement?
    pub elected: bool,
    /// The number of enclosing statements.
    pub depth: u32,
}

/// A statement at which threads diverge.
#[derive(Clone, Copy, Debug)]
pub struct DivergencePoint {
    /// The kind of statement: `if`, `for`, `while` or `elect`.
    pub what: &'static str,
    /// The position of the statement.
    pub loc: Loc,
}

/// Calls `f` for every statement in program order, outer statements first.
pub fn sites<'k>(kernel: &'k Kernel, uniformity: &Uniformity, f: &mut dyn FnMut(&StmtSite<'k>)) {
    let mut walk_block = |role, block: &'k Block| {
        let frame = Surroundings {
            role,
            reach: Uniform::Cta,
            split: None,
            elected: false,
            depth: 0,
        };
        walk(block, uniformity, frame, f);
    };
    walk_block(None, &kernel.prologue);
    for (i, role) in kernel.roles.iter().enumerate() {
        walk_block(Some(RoleId(i as u32)), &role.body);
    }
    walk_block(None, &kernel.epilogue);
}

#[derive(Clone, Copy)]
struct Surroundings {
    role: Option<RoleId>,
    reach: Uniform,
    split: Option<DivergencePoint>,
    elected: bool,
    depth: u32,
}

fn walk<'k>(block: &'k Block, u: &Uniformity, at: Surroundings, f: &mut dyn FnMut(&StmtSite<'k>)) {
    for stmt in &block.0 {
        f(&StmtSite {
            stmt,
            role: at.role,
            reach: at.reach,
            split: at.split,
            elected: at.elected,
            depth: at.depth,
        });
        let inside = u.inside(stmt);
        let what = match &stmt.kind {
            StmtKind::Op(_) => continue,
            StmtKind::If { .. } => "if",
            StmtKind::For { .. } => "for",
            StmtKind::While { .. } => "while",
            StmtKind::Elect { .. } => "elect",
        };
        let inner = Surroundings {
            reach: at.reach.min(inside),
            split: if inside < at.reach {
                Some(DivergencePoint {
                    what,
                    loc: stmt.loc,
                })
            } else {
                at.split
            },
            elected: at.elected || matches!(stmt.kind, StmtKind::Elect { .. }),
            depth: at.depth + 1,
            ..at
        };
        match &stmt.kind {
            StmtKind::Op(_) => {}
            StmtKind::If { then, other, .. } => {
                walk(then, u, inner, f);
                walk(other, u, inner, f);
            }
            StmtKind::For { body, .. } | StmtKind::Elect { body } => walk(body, u, inner, f),
            StmtKind::While { head, body, .. } => {
                walk(head, u, inner, f);
                walk(body, u, inner, f);
            }
        }
    }
}
