//! Registers are written before they are read, on every path.

use super::RuleContext;
use crate::codes;
use crate::diagnostic::{Findings, Rule};
use crate::facts::Facts;
use warpline_ir::{Block, Kernel, Loc, Operand, RegId, RoleId, StmtKind};

/// The rules of this group.
pub const RULES: &[Rule] = &[DEFINED];

const DEFINED: Rule = codes::S_DEFINED;

pub(crate) fn judge<'k>(cx: &RuleContext<'k>, found: &mut Findings<'k>) {
    let kernel = cx.kernel;
    let mut walk = Walk {
        kernel,
        found,
        role: None,
        reported: vec![false; kernel.regs.len()],
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

/// For each register: is it written on every path to this point?
type Known = Vec<bool>;

fn both(mut a: Known, b: Known) -> Known {
    a.iter_mut().zip(b).for_each(|(a, b)| *a &= b);
    a
}

struct Walk<'a, 'k> {
    kernel: &'k Kernel,
    found: &'a mut Findings<'k>,
    role: Option<RoleId>,
    /// Registers that were reported already; one diagnostic per register is enough.
    reported: Vec<bool>,
}

impl Walk<'_, '_> {
    fn read(&mut self, known: &Known, o: Operand, loc: Loc) {
        if let Some(r) = o.as_reg()
            && !known[r.index()]
            && !self.reported[r.index()]
        {
            self.reported[r.index()] = true;
            let text = format!(
                "register {r} ({}) may be read before it is written",
                self.kernel.ty(r)
            );
            self.found.report(&DEFINED, loc, self.role, text);
            let created = self.kernel.regs[r.index()].loc;
            self.found
                .label("the register is created here", created, None);
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
                // The other lanes do not run the body.
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
