//! Every op is legal on the target, by its own definition.

use super::{RuleContext, named_barriers, registers, wgmma};
use crate::codes;
use crate::diagnostic::{Findings, Rule};
use warpline_ir::Op;

/// The rules of this group.
pub const RULES: &[Rule] = &[OP];

const OP: Rule = codes::S_OP;

/// Returns the rule of an op's own legality check.
fn rule(op: &Op) -> &'static Rule {
    match op {
        Op::Wgmma(_) => &wgmma::SHAPE,
        Op::SetMaxRegs(_) => &registers::COUNT,
        Op::NamedSync(_) | Op::NamedArrive(_) | Op::NamedReduce(_) => &named_barriers::THREADS,
        _ => &OP,
    }
}

pub(crate) fn check<'k>(cx: &RuleContext<'k>, found: &mut Findings<'k>) {
    for op in &cx.ops {
        if let Err(text) = op.op.legal(cx.target) {
            found.report(rule(op.op), op.loc(), op.site.role, text);
        }
    }
}
