//! Register budgets that are not reduced or exceed the register file of the CTA.

use crate::edit::Edit;
use crate::sites::{KernelSites, Site};
use warpline_ir::Op;
use warpline_ir::ops::control::SetMaxRegs;

/// Drops a `setmaxnreg.dec`.
pub(super) fn drop_decrease(sites: &KernelSites<'_>) -> Vec<Edit> {
    sites.drop_ops(|op| matches!(op, Op::SetMaxRegs(SetMaxRegs { grow: false, .. })))
}

/// Raises one budget to the smallest value that exceeds the registers of the CTA.
pub(super) fn exceed_pool(sites: &KernelSites<'_>) -> Vec<Edit> {
    let requests: Vec<(&Site<'_>, u32, bool)> = sites
        .ops()
        .filter_map(|(site, op)| match *op {
            Op::SetMaxRegs(SetMaxRegs { count, grow }) => Some((site, count, grow)),
            _ => None,
        })
        .collect();
    let entry = sites.kernel.target.entry_registers(sites.kernel.threads());
    let budget = |role: usize| {
        let mine = requests
            .iter()
            .find(|(site, ..)| site.role.is_some_and(|r| r.index() == role));
        mine.map_or(entry, |(_, count, _)| *count)
    };
    let roles = || sites.kernel.roles.iter().enumerate();
    let pool = sites.kernel.warps() * entry;
    let greedy = |&(site, count, grow): &(&Site<'_>, u32, bool)| {
        let role = site.role?.index();
        let others = roles().filter(|(i, _)| *i != role);
        let others: u32 = others.map(|(i, r)| r.warps * budget(i)).sum();
        let left = pool.checked_sub(others)? / sites.kernel.roles[role].warps;
        let request = left / 8 * 8 + 8;
        if request > 256 || (!grow && request > entry) {
            return None;
        }
        let mut draft = sites.draft(site);
        draft.op(SetMaxRegs {
            count: request,
            grow,
        });
        let text = format!("{request} registers per thread, not {count}");
        Some(sites.replace_with_draft(site, text, draft))
    };
    requests.iter().filter_map(greedy).collect()
}
