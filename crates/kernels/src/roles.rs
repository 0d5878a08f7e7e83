//! Role declarations that several families share.

use warpline_family::error::FamilyError;
use warpline_ir::Target;
use warpline_ir::builder::*;

/// Names of the consumer roles.
pub(crate) const CONSUMERS: [&str; 4] = ["consumer0", "consumer1", "consumer2", "consumer3"];

/// Registers per thread of the copy roles and of the consumers, as set by `setmaxnreg`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RegisterBudget {
    /// Registers of a thread that loads or stores.
    pub load: u32,
    /// Registers of a consumer thread.
    pub math: u32,
}

/// Declares the producer and the consumers, roles of whole warpgroups first. The producer is a
/// warpgroup only if the kernel has register budgets.
pub(crate) fn declare_roles(
    registers: Option<RegisterBudget>,
    producer: impl FnOnce(),
    consumers: impl FnOnce(),
) {
    match registers {
        Some(_) => {
            producer();
            consumers();
        }
        None => {
            consumers();
            producer();
        }
    }
}

/// Declares a consumer role: one warpgroup.
#[track_caller]
pub(crate) fn consumer(k: Builder, i: u32, registers: Option<RegisterBudget>) -> RoleDecl {
    let role = k.role(CONSUMERS[i as usize]).warpgroups(1);
    role.registers_opt(registers.map(|r| r.math))
}

/// Declares a role in which one thread issues copies. It is one warp, or a warpgroup if it has a
/// register budget: `setmaxnreg` acts on whole warpgroups.
pub(crate) fn copy_role(k: Builder, name: &str, registers: Option<u32>) -> RoleDecl {
    let role = k.role(name);
    match registers {
        None => role.warps(1),
        some => role.warpgroups(1).registers_opt(some),
    }
}

/// The register budget of one role.
pub(crate) struct RoleRegisters {
    /// The name of the role in messages: `loading`.
    pub(crate) role: &'static str,
    /// Warpgroups of the role.
    pub(crate) warpgroups: u32,
    /// Registers per thread.
    pub(crate) registers: u32,
    /// The flag that sets the budget.
    pub(crate) option: &'static str,
}

/// Rejects budgets that `setmaxnreg` does not accept, and budgets whose sum exceeds the registers of
/// the CTA at entry: the last role that requests registers would wait forever.
pub(crate) fn check_registers(roles: &[RoleRegisters], target: &Target) -> Result<(), FamilyError> {
    let reject = |text: String| Err(FamilyError::Config(text));
    for b in roles {
        if !b.registers.is_multiple_of(8) || !(24..=240).contains(&b.registers) {
            return reject(format!(
                "{} registers per {} thread; setmaxnreg needs a multiple of 8 from 24 to 240\nhelp: change {}",
                b.registers, b.role, b.option
            ));
        }
    }
    let warpgroups: u32 = roles.iter().map(|b| b.warpgroups).sum();
    let pool = target.entry_registers(128 * warpgroups) * warpgroups;
    let requested: u32 = roles.iter().map(|b| b.warpgroups * b.registers).sum();
    if requested > pool {
        let terms = roles
            .iter()
            .map(|b| format!("{} x {} ({})", b.warpgroups, b.registers, b.role));
        let terms: Vec<_> = terms.collect();
        return reject(format!(
            "the register budgets need {} = {requested} registers, but {warpgroups} warpgroups have {pool}\n\
             help: lower {}",
            terms.join(" + "),
            roles[roles.len() - 1].option
        ));
    }
    Ok(())
}
