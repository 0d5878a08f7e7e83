//! The threads that agree on the value of a register.
//!
//! A register is as uniform as the least uniform value that is ever written to it. A value written
//! under a condition is no more uniform than the condition. All registers start as uniform in the
//! CTA; passes over the program lower them until nothing changes.
//!
//! The analysis follows thread and warp indices through sums with constants, so that `tid / 32` is
//! uniform in a warp and `warp / 4` in a warpgroup.

use crate::facts::Facts;
use warpline_ir::{Block, Kernel, Op, Operand, RegId, Special, Stmt, StmtKind, Uniform};

/// The uniformity of every register of a kernel.
#[derive(Clone, Debug)]
pub struct Uniformity {
    regs: Vec<Uniform>,
}

impl Uniformity {
    /// Analyzes a kernel whose ids are all declared.
    pub fn of(kernel: &Kernel) -> Self {
        let mut a = Analysis {
            regs: vec![Uniform::Cta; kernel.regs.len()],
            index: indices(kernel),
            changed: true,
        };
        while a.changed {
            a.changed = false;
            a.block(&kernel.prologue, Uniform::Cta);
            for role in &kernel.roles {
                a.block(&role.body, Uniform::Cta);
            }
            a.block(&kernel.epilogue, Uniform::Cta);
        }
        Self { regs: a.regs }
    }

    /// Returns the threads that agree on a register.
    pub fn reg(&self, r: RegId) -> Uniform {
        self.regs[r.index()]
    }

    /// Returns the threads that agree on an operand.
    pub fn operand(&self, o: Operand) -> Uniform {
        operand(&self.regs, o)
    }

    /// Returns the threads that stay together inside the blocks of a statement that all threads
    /// reach together.
    pub fn inside(&self, s: &Stmt) -> Uniform {
        inside(&self.regs, s)
    }
}

fn operand(regs: &[Uniform], o: Operand) -> Uniform {
    o.as_reg().map_or(Uniform::Cta, |r| regs[r.index()])
}

fn inside(regs: &[Uniform], s: &Stmt) -> Uniform {
    match &s.kind {
        StmtKind::Op(_) => Uniform::Cta,
        StmtKind::If { cond, .. } | StmtKind::While { cond, .. } => regs[cond.index()],
        StmtKind::For { from, to, step, .. } => {
            let uniform = |o: &Operand| operand(regs, *o);
            uniform(from).min(uniform(to)).min(uniform(step))
        }
        StmtKind::Elect { .. } => Uniform::Lane,
    }
}

struct Analysis {
    regs: Vec<Uniform>,
    index: Vec<Option<Index>>,
    changed: bool,
}

impl Analysis {
    fn lower(&mut self, r: RegId, to: Uniform) {
        let reg = &mut self.regs[r.index()];
        if to < *reg {
            *reg = to;
            self.changed = true;
        }
    }

    fn block(&mut self, block: &Block, reach: Uniform) {
        for s in &block.0 {
            let inner = reach.min(inside(&self.regs, s));
            match &s.kind {
                StmtKind::Op(op) => self.op(op, reach),
                StmtKind::If { then, other, .. } => {
                    self.block(then, inner);
                    self.block(other, inner);
                }
                StmtKind::For { var, body, .. } => {
                    self.lower(*var, inner);
                    self.block(body, inner);
                }
                StmtKind::While { head, body, .. } => {
                    self.block(head, inner);
                    self.block(body, inner);
                }
                StmtKind::Elect { body } => self.block(body, inner),
            }
        }
    }

    fn op(&mut self, op: &Op, reach: Uniform) {
        let facts = Facts::of(op);
        let operands = facts
            .uses()
            .map(|r| self.regs[r.index()])
            .min()
            .unwrap_or(Uniform::Cta);
        let result = quotient_uniformity(op, &self.index).unwrap_or_else(|| op.uniform(operands));
        for &r in &facts.defs {
            self.lower(r, result.min(reach));
        }
    }
}

/// A thread or warp index of the CTA plus a constant.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Index {
    /// The number of threads that share a value.
    threads: u64,
    /// The constant, in threads.
    offset: i64,
}

/// Finds the registers that hold an index: those written once, from an index.
fn indices(kernel: &Kernel) -> Vec<Option<Index>> {
    let mut writes = vec![0u32; kernel.regs.len()];
    kernel.each_stmt(&mut |_, s| match &s.kind {
        StmtKind::Op(op) => {
            for r in Facts::of(op).defs {
                writes[r.index()] += 1;
            }
        }
        StmtKind::For { var, .. } => writes[var.index()] += 2,
        _ => {}
    });
    let mut index = vec![None; kernel.regs.len()];
    kernel.each_stmt(&mut |_, s| {
        if let StmtKind::Op(op) = &s.kind
            && let Some((dst, found)) = index_of(op, &index)
            && writes[dst.index()] == 1
        {
            index[dst.index()] = Some(found);
        }
    });
    index
}

fn index_of(op: &Op, index: &[Option<Index>]) -> Option<(RegId, Index)> {
    let index_in = |o: Operand| o.as_reg().and_then(|r| index[r.index()]);
    let plus = |i: Index, by: i64| Index {
        offset: i.offset + by * i.threads as i64,
        ..i
    };
    let constant = |o: Operand| o.as_imm().map(|x| i64::from(x as u32 as i32));
    match op {
        Op::ReadSpecial(o) => {
            let threads = match o.which {
                Special::Tid => 1,
                Special::WarpId => 32,
                _ => return None,
            };
            Some((o.dst, Index { threads, offset: 0 }))
        }
        Op::Mov(o) => Some((o.dst, index_in(o.src)?)),
        Op::Bitcast(o) => Some((o.dst, index_in(o.src)?)),
        Op::Add(o) => match (index_in(o.a), constant(o.b), constant(o.a), index_in(o.b)) {
            (Some(i), Some(by), _, _) | (_, _, Some(by), Some(i)) => Some((o.dst, plus(i, by))),
            _ => None,
        },
        Op::Sub(o) => Some((o.dst, plus(index_in(o.a)?, -constant(o.b)?))),
        _ => None,
    }
}

/// Returns the threads that agree on an index divided by a constant.
fn quotient_uniformity(op: &Op, index: &[Option<Index>]) -> Option<Uniform> {
    let (a, by) = match op {
        Op::Shr(o) => (o.a, 1u64.checked_shl(u32::try_from(o.b.as_imm()?).ok()?)?),
        Op::Div(o) => (o.a, o.b.as_imm()?),
        _ => return None,
    };
    // An index below zero wraps around 2³², which a power of two divides, so it stays in its group.
    if !by.is_power_of_two() {
        return None;
    }
    let i = index[a.as_reg()?.index()]?;
    let group = i.threads.checked_mul(by)?;
    let is_uniform_in = |size: i64| group.is_multiple_of(size as u64) && i.offset % size == 0;
    if is_uniform_in(128) {
        Some(Uniform::Warpgroup)
    } else if is_uniform_in(32) {
        Some(Uniform::Warp)
    } else {
        None
    }
}
