//! Registers near the budget.

use crate::case::{Answers, Case};
use crate::finding::Finding;
use warpline_ir::Role;
use warpline_ptx::RoleEstimate;

/// The share of its budget from which a role warns.
///
/// The next value that must stay in a register, or the next release of ptxas,
/// then spills.
pub const NEAR: f64 = 0.9;

fn is_near(used: u32, budget: u32) -> bool {
    f64::from(used) >= NEAR * f64::from(budget)
}

pub(crate) fn look(case: &Case<'_>, mut answers: Answers<'_>) -> Vec<Finding> {
    // ptxas counts for the kernel as a whole. Where roles move registers that
    // is what it enters with, and our estimate is all there is of each.
    let moves = case.kernel.roles.iter().any(|r| r.registers.is_some());
    if let (Ok(entry), false) = (&case.entry, moves) {
        let (used, budget) = (
            entry.registers,
            case.target.entry_registers(case.kernel.threads()),
        );
        let text = format!("{used} of {budget} registers, as ptxas has it");
        if is_near(used, budget) {
            answers.warn_role(text.clone(), nearest(case).map(|(role, _)| role));
        }
        return answers.or_pass(|| text);
    }
    for (role, estimate) in roles(case) {
        if is_near(estimate.registers, estimate.budget) {
            answers.warn_role(sentence(estimate), Some(role));
        }
    }
    answers.or_pass(|| match nearest(case) {
        Some((_, e)) => format!(
            "role {} comes nearest to its budget: {}",
            e.name,
            sentence(e)
        ),
        None => "the kernel has no role".to_owned(),
    })
}

fn roles<'c>(case: &'c Case<'_>) -> impl Iterator<Item = (&'c Role, &'c RoleEstimate)> {
    case.kernel.roles.iter().zip(&case.estimate.roles)
}

/// The role that our estimate has nearest to its budget.
pub(super) fn nearest<'c>(case: &'c Case<'_>) -> Option<(&'c Role, &'c RoleEstimate)> {
    let share = |e: &RoleEstimate| f64::from(e.registers) / f64::from(e.budget.max(1));
    roles(case).max_by(|a, b| share(a.1).total_cmp(&share(b.1)))
}

fn sentence(e: &RoleEstimate) -> String {
    format!(
        "about {} of {} registers, as we estimate",
        e.registers, e.budget
    )
}
