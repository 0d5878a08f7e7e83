//! Registers that are not given back, or asked for beyond what there is.

use crate::case::{Case, Spot};
use crate::edit::Edit;
use warpline_ir::Op;
use warpline_ir::ops::control::SetMaxRegs;

/// A decrease left out.
pub(super) fn keep(c: &Case<'_>) -> Vec<Edit> {
    c.without(|op| matches!(op, Op::SetMaxRegs(SetMaxRegs { grow: false, .. })))
}

/// The least request of one role that is more than the CTA has.
pub(super) fn greedy(c: &Case<'_>) -> Vec<Edit> {
    let requests: Vec<(&Spot<'_>, u32, bool)> = c
        .ops()
        .filter_map(|(spot, op)| match *op {
            Op::SetMaxRegs(SetMaxRegs { count, grow }) => Some((spot, count, grow)),
            _ => None,
        })
        .collect();
    let entry = c.kernel.target.entry_registers(c.kernel.threads());
    let held = |role: usize| {
        let mine = requests
            .iter()
            .find(|(spot, ..)| spot.role.is_some_and(|r| r.index() == role));
        mine.map_or(entry, |(_, count, _)| *count)
    };
    let roles = || c.kernel.roles.iter().enumerate();
    let pool = c.kernel.warps() * entry;
    let greedy = |&(spot, count, grow): &(&Spot<'_>, u32, bool)| {
        let role = spot.role?.index();
        let others = roles().filter(|(i, _)| *i != role);
        let others: u32 = others.map(|(i, r)| r.warps * held(i)).sum();
        let left = pool.checked_sub(others)? / c.kernel.roles[role].warps;
        let asked = left / 8 * 8 + 8;
        if asked > 256 || (!grow && asked > entry) {
            return None;
        }
        let mut draft = c.draft(spot);
        draft.op(SetMaxRegs { count: asked, grow });
        let text = format!("{asked} registers per thread, not {count}");
        Some(c.drafted(spot, text, draft))
    };
    requests.iter().filter_map(greedy).collect()
}
