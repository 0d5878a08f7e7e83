//! Every op is one the target has, in a form it takes: what the op says of itself.

use super::{Case, named, registers, wgmma};
use crate::refusal::{Findings, Rule};
use warpline_ir::Op;

/// The rules of this group.
pub const RULES: &[Rule] = &[OP];

const OP: Rule = Rule {
    code: "S.op",
    holds: "every op is legal on the target",
};

/// The rule that an op's own legality belongs to.
fn rule(op: &Op) -> &'static Rule {
    match op {
        Op::Wgmma(_) => &wgmma::SHAPE,
        Op::SetMaxRegs(_) => &registers::COUNT,
        Op::NamedSync(_) | Op::NamedArrive(_) | Op::NamedTally(_) => &named::THREADS,
        _ => &OP,
    }
}

pub(crate) fn judge<'k>(case: &Case<'k>, found: &mut Findings<'k>) {
    for op in &case.ops {
        if let Err(text) = op.op.legal(case.target) {
            found.refuse(rule(op.op), op.loc(), op.site.role, text);
        }
    }
}
