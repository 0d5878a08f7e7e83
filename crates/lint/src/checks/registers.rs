//! Registers near the budget.

use crate::finding::LintFinding;
use crate::input::{FindingList, LintInput};
use warpline_ir::Role;
use warpline_ptx::RoleEstimate;

/// The share of its budget from which a role warns.
///
/// Beyond it, one more live value or another version of ptxas causes spills.
pub const NEAR_BUDGET: f64 = 0.9;

fn is_near(used: u32, budget: u32) -> bool {
    f64::from(used) >= NEAR_BUDGET * f64::from(budget)
}

pub(crate) fn run(input: &LintInput<'_>, mut findings: FindingList<'_>) -> Vec<LintFinding> {
    // ptxas reports one number for the kernel. With `setmaxnreg` that is the number at entry, and
    // only the estimate covers each role.
    let has_setmaxnreg = input.kernel.roles.iter().any(|r| r.registers.is_some());
    if let (Ok(entry), false) = (&input.ptxas_report, has_setmaxnreg) {
        let (used, budget) = (
            entry.registers,
            input.target.entry_registers(input.kernel.threads()),
        );
        let text = format!("{used} of {budget} registers (ptxas)");
        if is_near(used, budget) {
            findings.warn_role(text.clone(), nearest(input).map(|(role, _)| role));
        }
        return findings.or_pass(|| text);
    }
    for (role, estimate) in roles(input) {
        if is_near(estimate.registers, estimate.budget) {
            findings.warn_role(usage_text(estimate), Some(role));
        }
    }
    findings.or_pass(|| match nearest(input) {
        Some((_, e)) => format!(
            "role `{}` is nearest to its budget: {}",
            e.name,
            usage_text(e)
        ),
        None => "the kernel has no role".to_owned(),
    })
}

fn roles<'c>(input: &'c LintInput<'_>) -> impl Iterator<Item = (&'c Role, &'c RoleEstimate)> {
    input.kernel.roles.iter().zip(&input.estimate.roles)
}

/// Returns the role whose estimate is nearest to its budget.
pub(super) fn nearest<'c>(input: &'c LintInput<'_>) -> Option<(&'c Role, &'c RoleEstimate)> {
    let share = |e: &RoleEstimate| f64::from(e.registers) / f64::from(e.budget.max(1));
    roles(input).max_by(|a, b| share(a.1).total_cmp(&share(b.1)))
}

fn usage_text(e: &RoleEstimate) -> String {
    format!("about {} of {} registers (estimate)", e.registers, e.budget)
}
