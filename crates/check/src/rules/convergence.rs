//! R15, convergence: ops of whole warps are reached by whole warps.

use super::{Case, OpSite};
use crate::facts::Whole;
use crate::refusal::{Findings, Rule};
use crate::walk::Site;
use warpline_ir::{Op, Operand, StmtKind, Uniform};

/// The rules of this group.
pub const RULES: &[Rule] = &[WARP, MASK, ELECT];

const WARP: Rule = Rule {
    code: "R15.warp",
    holds: "an `.aligned` op is reached by all lanes of a warp together",
};
const MASK: Rule = Rule {
    code: "R15.mask",
    holds: "an op that names all lanes of the warp is reached by all of them",
};
const ELECT: Rule = Rule {
    code: "R15.elect",
    holds: "an elect is reached by all lanes of a warp together, or by one that was elected",
};

pub(crate) fn judge<'k>(case: &Case<'k>, found: &mut Findings<'k>) {
    for site in &case.sites {
        if matches!(site.stmt.kind, StmtKind::Elect { .. })
            && site.reach < Uniform::Warp
            && !site.elected
        {
            let text = format!(
                "elect is reached by all lanes of a warp together{}",
                split(case, site)
            );
            found.refuse(&ELECT, site.stmt.loc, site.role, text);
        }
    }
    for op in &case.ops {
        if op.site.reach >= Uniform::Warp {
            continue;
        }
        let (rule, lanes) = if op.facts.whole >= Whole::Warp {
            (&WARP, "is reached by all lanes of a warp together")
        } else if names_all_lanes(op) {
            (
                &MASK,
                "names all lanes of the warp and is reached by all of them",
            )
        } else {
            continue;
        };
        let text = format!("{} {lanes}{}", op.op.name(), split(case, &op.site));
        found.refuse(rule, op.loc(), op.site.role, text);
    }
}

fn split(case: &Case, site: &Site) -> String {
    site.split.map_or(String::new(), |s| {
        format!(
            "; the {} at {} parts them",
            s.what,
            case.kernel.locs.show(s.loc)
        )
    })
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
