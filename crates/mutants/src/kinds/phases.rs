//! Wrong parities of waits and of cursors.

use crate::edit::Edit;
use crate::sites::{KernelSites, Site};
use std::collections::HashSet;
use warpline_ir::ops::arith::Mov;
use warpline_ir::ops::mbarrier::MbarrierWait;
use warpline_ir::{Op, Operand, RegId};

/// Waits for the other parity.
pub(super) fn flip_wait_parity(sites: &KernelSites<'_>) -> Vec<Edit> {
    let flip = |(site, op): (&Site<'_>, &Op)| {
        let Op::MbarrierWait(wait) = op else {
            return None;
        };
        let mut draft = sites.draft(site);
        let parity = draft.flip_parity(wait.parity);
        draft.op(MbarrierWait {
            parity,
            ..wait.clone()
        });
        Some(sites.replace_with_draft(
            site,
            format!("{} of the other parity", sites.name(op)),
            draft,
        ))
    };
    sites.ops().filter_map(flip).collect()
}

/// Starts a parity variable with the other parity.
pub(super) fn flip_initial_parity(sites: &KernelSites<'_>) -> Vec<Edit> {
    let waited: HashSet<RegId> = sites
        .ops()
        .filter_map(|(_, op)| match op {
            Op::MbarrierWait(wait) => wait.parity.as_reg(),
            _ => None,
        })
        .collect();
    // A wait reads a copy: the cursor has advanced the variable before the wait.
    let carried: HashSet<RegId> = sites
        .ops()
        .filter_map(|(_, op)| match op {
            Op::Mov(Mov { dst, src, .. }) if waited.contains(dst) => src.as_reg(),
            _ => None,
        })
        .collect();
    let flip = |(site, op): (&Site<'_>, &Op)| match *op {
        Op::Mov(Mov {
            ty,
            dst,
            src: Operand::Imm(x @ (0 | 1)),
        }) if site.enclosing.is_empty() && carried.contains(&dst) => {
            let mut draft = sites.draft(site);
            let src = Operand::Imm(x ^ 1);
            draft.op(Mov { ty, dst, src });
            let text = format!("a parity begins with {}, not {x}", x ^ 1);
            Some(sites.replace_with_draft(site, text, draft))
        }
        _ => None,
    };
    sites.ops().filter_map(flip).collect()
}
