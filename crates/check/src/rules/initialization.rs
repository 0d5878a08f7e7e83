//! Registers are written before they are read, on every path.

use super::RuleContext;
use crate::codes;
use crate::diagnostic::{Findings, Rule};
use crate::facts::Facts;
use warpline_ir::{Block, Kernel, Loc, Operand, RegId, RoleId, StmtKind};

/// The rules of this group.
pub const RULES: &[Rule] = &[DEFINED];

const DEFINED: Rule = codes::S_DEFINED;

pub(crate) fn check<'k>(cx: &RuleContext<'k>, found: &mut Findings<'k>) {
    let kernel = cx.kernel;
    let mut walk = Walk {
        kernel,
        found,
        role: None,
        reported: vec![false; kernel.regs.len()],
    };
    let mut written = vec![false; kernel.regs.len()];
    walk.block(&kernel.prologue, &mut written);
    let ends: Vec<Written> = kernel
        .roles
        .iter()
        .enumerate()
        .map(|(i, role)| {
            walk.role = Some(RoleId(i as u32));
            let mut in_role = written.clone();
            walk.block(&role.body, &mut in_role);
            in_role
        })
        .collect();
    walk.role = None;
    if let Some(mut end) = ends.into_iter().reduce(intersection) {
        walk.block(&kernel.epilogue, &mut end);
    }
}

/// For each register: is it written on every path to this point?
type Written = Vec<bool>;

fn intersection(mut a: Written, b: Written) -> Written {
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
    fn read(&mut self, written: &Written, o: Operand, loc: Loc) {
        if let Some(r) = o.as_reg()
            && !written[r.index()]
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

    fn block(&mut self, block: &Block, written: &mut Written) {
        for s in &block.0 {
            match &s.kind {
                StmtKind::Op(op) => {
                    let facts = Facts::of(op);
                    for r in facts.uses() {
                        self.read(written, r.into(), s.loc);
                    }
                    mark_written(written, &facts.defs);
                }
                StmtKind::If { cond, then, other } => {
                    self.read(written, (*cond).into(), s.loc);
                    let mut after_else = written.clone();
                    self.block(then, written);
                    self.block(other, &mut after_else);
                    *written = intersection(std::mem::take(written), after_else);
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
                        self.read(written, *o, s.loc);
                    }
                    mark_written(written, &[*var]);
                    self.block(body, &mut written.clone());
                }
                StmtKind::While { head, cond, body } => {
                    self.block(head, written);
                    self.read(written, (*cond).into(), s.loc);
                    self.block(body, &mut written.clone());
                }
                // The other lanes do not run the body.
                StmtKind::Elect { body } => self.block(body, &mut written.clone()),
            }
        }
    }
}

fn mark_written(written: &mut Written, regs: &[RegId]) {
    for r in regs {
        written[r.index()] = true;
    }
}
