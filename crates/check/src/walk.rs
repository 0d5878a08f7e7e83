//! Every statement of a kernel, with the threads that reach it together.

use crate::uniform::Uniformity;
use warpline_ir::{Block, Kernel, Loc, RoleId, Stmt, StmtKind, Uniform};

/// A statement and what surrounds it.
#[derive(Clone, Copy, Debug)]
pub struct Site<'k> {
    /// The statement.
    pub stmt: &'k Stmt,
    /// Its role; `None`: prologue or epilogue, which every thread runs.
    pub role: Option<RoleId>,
    /// The threads that reach it together.
    pub reach: Uniform,
    /// The enclosing statement that parted the others off.
    pub split: Option<Split>,
    /// Does one lane of each warp run it?
    pub elected: bool,
    /// How many statements enclose it.
    pub depth: u32,
}

/// A statement whose blocks not all threads run together.
#[derive(Clone, Copy, Debug)]
pub struct Split {
    /// What it is: `if`, `for`, `while` or `elect`.
    pub what: &'static str,
    /// Where it is.
    pub loc: Loc,
}

/// Calls `f` for every statement in program order, outer ones before inner ones.
pub fn sites<'k>(kernel: &'k Kernel, uniformity: &Uniformity, f: &mut dyn FnMut(&Site<'k>)) {
    let mut part = |role, block: &'k Block| {
        let frame = Frame {
            role,
            reach: Uniform::Cta,
            split: None,
            elected: false,
            depth: 0,
        };
        walk(block, uniformity, frame, f);
    };
    part(None, &kernel.prologue);
    for (i, role) in kernel.roles.iter().enumerate() {
        part(Some(RoleId(i as u32)), &role.body);
    }
    part(None, &kernel.epilogue);
}

#[derive(Clone, Copy)]
struct Frame {
    role: Option<RoleId>,
    reach: Uniform,
    split: Option<Split>,
    elected: bool,
    depth: u32,
}

fn walk<'k>(block: &'k Block, u: &Uniformity, at: Frame, f: &mut dyn FnMut(&Site<'k>)) {
    for stmt in &block.0 {
        f(&Site {
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
        let inner = Frame {
            reach: at.reach.min(inside),
            split: if inside < at.reach {
                Some(Split {
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
