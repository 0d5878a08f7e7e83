//! Registers are written before they are read, whichever way the program goes.

use super::Case;
use crate::facts::Facts;
use crate::refusal::{Findings, Rule};
use warpline_ir::{Block, Kernel, Loc, Operand, RegId, RoleId, StmtKind};

/// The rules of this group.
pub const RULES: &[Rule] = &[DEFINED];

const DEFINED: Rule = Rule {
    code: "S.defined",
    holds: "a register is written on every way that leads to its use",
};

pub(crate) fn judge<'k>(case: &Case<'k>, found: &mut Findings<'k>) {
    let kernel = case.kernel;
    let mut walk = Walk {
        kernel,
        found,
        role: None,
        told: vec![false; kernel.regs.len()],
    };
    let mut known = vec![false; kernel.regs.len()];
    walk.block(&kernel.prologue, &mut known);
    let ends: Vec<Known> = kernel
        .roles
        .iter()
        .enumerate()
        .map(|(i, role)| {
            walk.role = Some(RoleId(i as u32));
            let mut mine = known.clone();
            walk.block(&role.body, &mut mine);
            mine
        })
        .collect();
    walk.role = None;
    if let Some(mut end) = ends.into_iter().reduce(both) {
        walk.block(&kernel.epilogue, &mut end);
    }
}

/// For each register: has it been written on every way here?
type Known = Vec<bool>;

fn both(mut a: Known, b: Known) -> Known {
    a.iter_mut().zip(b).for_each(|(a, b)| *a &= b);
    a
}

struct Walk<'a, 'k> {
    kernel: &'k Kernel,
    found: &'a mut Findings<'k>,
    role: Option<RoleId>,
    /// Registers already refused: one line for each is enough.
    told: Vec<bool>,
}

impl Walk<'_, '_> {
    fn read(&mut self, known: &Known, o: Operand, loc: Loc) {
        if let Some(r) = o.as_reg()
            && !known[r.index()]
            && !self.told[r.index()]
        {
            self.told[r.index()] = true;
            let made = self.kernel.locs.show(self.kernel.regs[r.index()].loc);
            let text = format!(
                "a register is written on every way that leads to its use; {r} ({}, made at {made}) may be read here before it is",
                self.kernel.ty(r)
            );
            self.found.refuse(&DEFINED, loc, self.role, text);
        }
    }

    fn block(&mut self, block: &Block, known: &mut Known) {
        for s in &block.0 {
            match &s.kind {
                StmtKind::Op(op) => {
                    let facts = Facts::of(op);
                    for r in facts.uses() {
                        self.read(known, r.into(), s.loc);
                    }
                    set(known, &facts.defs);
                }
                StmtKind::If { cond, then, other } => {
                    self.read(known, (*cond).into(), s.loc);
                    let mut or = known.clone();
                    self.block(then, known);
                    self.block(other, &mut or);
                    *known = both(std::mem::take(known), or);
                }
                StmtKind::For {
                    var,
                    from,
                    to,
                    step,
                    body,
                    ..
                } => {
                    for o in [from, to, step] {
                        self.read(known, *o, s.loc);
                    }
                    set(known, &[*var]);
                    self.block(body, &mut known.clone());
                }
                StmtKind::While { head, cond, body } => {
                    self.block(head, known);
                    self.read(known, (*cond).into(), s.loc);
                    self.block(body, &mut known.clone());
                }
                // The other lanes do not run it.
                StmtKind::Elect { body } => self.block(body, &mut known.clone()),
            }
        }
    }
}

fn set(known: &mut Known, regs: &[RegId]) {
    for r in regs {
        known[r.index()] = true;
    }
}
