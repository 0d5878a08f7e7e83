//! An operand has the type that its statement takes, and a role uses only its own registers and those
//! of the prologue.

use super::RuleContext;
use crate::codes;
use crate::diagnostic::{Findings, Rule};
use warpline_ir::{Kernel, Operand, RegId, StmtKind, Type};

/// The rules of this group.
pub const RULES: &[Rule] = &[TYPE, SCOPE, LOOP];

const TYPE: Rule = codes::S_TYPE;
const SCOPE: Rule = codes::S_SCOPE;
const LOOP: Rule = codes::S_LOOP;

pub(crate) fn check<'k>(cx: &RuleContext<'k>, found: &mut Findings<'k>) {
    let kernel = cx.kernel;
    for site in &cx.sites {
        let (defs, reads) = operands(cx, &site.stmt.kind);
        let (role, loc) = (site.role, site.stmt.loc);
        let name = stmt_name(&site.stmt.kind);
        for &(o, want) in &reads {
            if let Some(text) = mismatch(kernel, o, want) {
                found.report(
                    &TYPE,
                    loc,
                    role,
                    format!("`{name}` takes {want}, but gets {text}"),
                );
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
                    "register {r} belongs to role `{}`",
                    kernel.roles[home.index()].name
                );
                found.report(&SCOPE, loc, role, text);
                found.label("the register is created here", reg.loc, Some(home));
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
                for r in operands(cx, &s.kind).0 {
                    if fixed.contains(&r) {
                        let text = format!(
                            "`{}` writes register {r}, the counter, end or step of an enclosing loop",
                            stmt_name(&s.kind)
                        );
                        found.report(&LOOP, s.loc, role, text);
                        found.label("the loop", loc, role);
                    }
                }
            });
        }
    }
}

/// Returns the registers that a statement writes and the operands it reads, without its blocks.
fn operands(cx: &RuleContext, kind: &StmtKind) -> (Vec<RegId>, Vec<(Operand, Type)>) {
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
            // The counter is u32 or i32, and the bounds have its type.
            let ty = match cx.kernel.ty(*var) {
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

fn stmt_name(kind: &StmtKind) -> String {
    match kind {
        StmtKind::Op(op) => op.name(),
        StmtKind::If { .. } => "if".into(),
        StmtKind::For { .. } => "for".into(),
        StmtKind::While { .. } => "while".into(),
        StmtKind::Elect { .. } => "elect".into(),
    }
}

/// Returns a description of the operand if it does not have type `want`; integers of the same width
/// are interchangeable.
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
