//! Operands have the types that statements take, and registers stay in their role.

use super::Case;
use crate::refusal::{Findings, Rule};
use warpline_ir::{Kernel, Operand, RegId, StmtKind, Type};

/// The rules of this group.
pub const RULES: &[Rule] = &[TYPE, SCOPE, LOOP];

const TYPE: Rule = Rule {
    code: "S.type",
    holds: "an operand has the type its statement takes; integers of one width pass for one another",
};
const SCOPE: Rule = Rule {
    code: "S.scope",
    holds: "a register is used in the role that made it; those of the prologue everywhere",
};
const LOOP: Rule = Rule {
    code: "S.loop",
    holds: "the counter and the bounds of a loop are not written inside it",
};

pub(crate) fn judge<'k>(case: &Case<'k>, found: &mut Findings<'k>) {
    let kernel = case.kernel;
    for site in &case.sites {
        let (defs, reads) = operands(case, &site.stmt.kind);
        let (role, loc) = (site.role, site.stmt.loc);
        let name = what(&site.stmt.kind);
        for &(o, want) in &reads {
            if let Some(text) = mismatch(kernel, o, want) {
                found.refuse(&TYPE, loc, role, format!("{name} takes {want}, not {text}"));
            }
        }
        let used = reads.iter().filter_map(|(o, _)| o.as_reg());
        let mut seen: Vec<RegId> = Vec::new();
        for r in defs.iter().copied().chain(used) {
            let reg = &kernel.regs[r.index()];
            if let Some(home) = reg.role
                && Some(home) != role
                && !seen.contains(&r)
            {
                seen.push(r);
                let text = format!(
                    "a register is used in the role that made it; {r} was made in role {} ({})",
                    kernel.roles[home.index()].name,
                    kernel.locs.show(reg.loc)
                );
                found.refuse(&SCOPE, loc, role, text);
            }
        }
        if let StmtKind::For {
            var,
            from: _,
            to,
            step,
            body,
            ..
        } = &site.stmt.kind
        {
            let fixed: Vec<RegId> = [Some(*var), to.as_reg(), step.as_reg()]
                .into_iter()
                .flatten()
                .collect();
            body.each(&mut |s| {
                for r in operands(case, &s.kind).0 {
                    if fixed.contains(&r) {
                        let text = format!(
                            "the counter and the bounds of a loop are not written inside it; {r} of the loop at {} is",
                            kernel.locs.show(loc)
                        );
                        found.refuse(&LOOP, s.loc, role, text);
                    }
                }
            });
        }
    }
}

/// Registers a statement writes and operands it reads, without its blocks.
fn operands(case: &Case, kind: &StmtKind) -> (Vec<RegId>, Vec<(Operand, Type)>) {
    match kind {
        StmtKind::Op(op) => {
            let facts = crate::facts::Facts::of(op);
            (facts.defs, facts.reads)
        }
        StmtKind::If { cond, .. } | StmtKind::While { cond, .. } => {
            (vec![], vec![((*cond).into(), Type::Pred)])
        }
        StmtKind::For {
            var,
            from,
            to,
            step,
            ..
        } => {
            // The counter is u32 or i32, and the bounds are what it is.
            let ty = match case.kernel.ty(*var) {
                Type::I32 => Type::I32,
                _ => Type::U32,
            };
            let var_is = ((*var).into(), ty);
            (
                vec![*var],
                vec![var_is, (*from, ty), (*to, ty), (*step, ty)],
            )
        }
        StmtKind::Elect { .. } => (vec![], vec![]),
    }
}

fn what(kind: &StmtKind) -> String {
    match kind {
        StmtKind::Op(op) => op.name(),
        StmtKind::If { .. } => "if".into(),
        StmtKind::For { .. } => "for".into(),
        StmtKind::While { .. } => "while".into(),
        StmtKind::Elect { .. } => "elect".into(),
    }
}

/// What an operand is instead, if it is not of a type.
fn mismatch(kernel: &Kernel, o: Operand, want: Type) -> Option<String> {
    match o {
        Operand::Reg(r) => {
            let ty = kernel.ty(r);
            let integers = ty.is_int() && want.is_int() && ty.bytes() == want.bytes();
            (ty != want && !integers).then(|| format!("{r}, which is {ty}"))
        }
        Operand::Imm(x) => {
            let bits = if want == Type::Pred {
                1
            } else {
                8 * want.bytes()
            };
            (bits < 64 && x >> bits != 0).then(|| format!("the constant {x:#x}"))
        }
    }
}
