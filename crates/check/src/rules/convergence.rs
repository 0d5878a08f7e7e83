//! R15, convergence: whole warps reach the ops that need whole warps.

use super::{OpSite, RuleContext};
use crate::codes;
use crate::diagnostic::{Findings, Rule};
use crate::facts::Convergence;
use crate::walk::StmtSite;
use warpline_ir::{Op, Operand, StmtKind, Uniform};

/// The rules of this group.
pub const RULES: &[Rule] = &[WARP, MASK, ELECT];

const WARP: Rule = codes::R15_WARP;
const MASK: Rule = codes::R15_MASK;
const ELECT: Rule = codes::R15_ELECT;

pub(crate) fn check<'k>(cx: &RuleContext<'k>, found: &mut Findings<'k>) {
    for site in &cx.sites {
        if matches!(site.stmt.kind, StmtKind::Elect { .. })
            && site.reach < Uniform::Warp
            && !site.elected
        {
            let text = "not all lanes of the warp reach this `elect` together";
            found.report(&ELECT, site.stmt.loc, site.role, text);
            label_split(site, found);
        }
    }
    for op in &cx.ops {
        if op.site.reach >= Uniform::Warp {
            continue;
        }
        let (rule, lanes) = if op.facts.convergence >= Convergence::Warp {
            (
                &WARP,
                "needs all lanes of the warp, but not all reach it together",
            )
        } else if names_all_lanes(op) {
            (
                &MASK,
                "names all lanes of the warp in its mask, but not all reach it",
            )
        } else {
            continue;
        };
        let text = format!("`{}` {lanes}", op.op.name());
        found.report(rule, op.loc(), op.site.role, text);
        label_split(&op.site, found);
    }
}

/// Labels the statement that splits the threads.
pub(super) fn label_split(site: &StmtSite, found: &mut Findings) {
    if let Some(split) = site.split {
        found.label(
            format!("this `{}` splits the threads", split.what),
            split.loc,
            site.role,
        );
    }
}

fn names_all_lanes(op: &OpSite) -> bool {
    let mask = match op.op {
        Op::Shuffle(o) => o.mask,
        Op::Vote(o) => o.mask,
        Op::Ballot(o) => o.mask,
        Op::MatchAny(o) => o.mask,
        Op::MatchAll(o) => o.mask,
        Op::Redux(o) => o.mask,
        Op::WarpSync(o) => o.mask,
        _ => return false,
    };
    mask == Operand::Imm(u32::MAX.into())
}
