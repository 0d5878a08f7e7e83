//! Parities: of a wait, and of what a role begins with.

use crate::case::{Case, Spot};
use crate::edit::Edit;
use std::collections::HashSet;
use warpline_ir::ops::arith::Mov;
use warpline_ir::ops::mbarrier::MbarrierWait;
use warpline_ir::{Op, Operand, RegId};

/// A wait for the other parity.
pub(super) fn wait(c: &Case<'_>) -> Vec<Edit> {
    let flip = |(spot, op): (&Spot<'_>, &Op)| {
        let Op::MbarrierWait(wait) = op else {
            return None;
        };
        let mut draft = c.draft(spot);
        let parity = draft.flip(wait.parity);
        draft.op(MbarrierWait {
            parity,
            ..wait.clone()
        });
        Some(c.drafted(spot, format!("{} of the other parity", c.name(op)), draft))
    };
    c.ops().filter_map(flip).collect()
}

/// A variable that waits take their parity from, set to the other one where the role begins.
pub(super) fn start(c: &Case<'_>) -> Vec<Edit> {
    let waited: HashSet<RegId> = c
        .ops()
        .filter_map(|(_, op)| match op {
            Op::MbarrierWait(wait) => wait.parity.as_reg(),
            _ => None,
        })
        .collect();
    // A wait reads a copy of the variable, which the cursor has moved on by then.
    let carried: HashSet<RegId> = c
        .ops()
        .filter_map(|(_, op)| match op {
            Op::Mov(Mov { dst, src, .. }) if waited.contains(dst) => src.as_reg(),
            _ => None,
        })
        .collect();
    let flip = |(spot, op): (&Spot<'_>, &Op)| match *op {
        Op::Mov(Mov {
            ty,
            dst,
            src: Operand::Imm(x @ (0 | 1)),
        }) if spot.around.is_empty() && carried.contains(&dst) => {
            let mut draft = c.draft(spot);
            let src = Operand::Imm(x ^ 1);
            draft.op(Mov { ty, dst, src });
            let text = format!("a parity begins with {}, not {x}", x ^ 1);
            Some(c.drafted(spot, text, draft))
        }
        _ => None,
    };
    c.ops().filter_map(flip).collect()
}
