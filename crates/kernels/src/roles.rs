//! Roles that kernels of several families have.

use warpline_family::error::FamilyError;
use warpline_ir::Target;
use warpline_ir::build::*;

/// The names of the roles that multiply.
pub(crate) const CONSUMERS: [&str; 4] = ["consumer0", "consumer1", "consumer2", "consumer3"];

/// Registers of a thread by role, as `setmaxnreg` sets them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Registers {
    /// Of a thread that loads or stores.
    pub load: u32,
    /// Of a thread that multiplies.
    pub math: u32,
}

/// Declares producer and consumers; whole warpgroups come first.
pub(crate) fn in_order(
    registers: Option<Registers>,
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

/// A role that multiplies.
#[track_caller]
pub(crate) fn consumer(k: Builder, i: u32, registers: Option<Registers>) -> RoleDecl {
    let role = k.role(CONSUMERS[i as usize]).warpgroups(1);
    role.registers_opt(registers.map(|r| r.math))
}

/// A role of one thread that works: one warp, or a warpgroup where registers are moved.
pub(crate) fn helper(k: Builder, name: &str, registers: Option<u32>) -> RoleDecl {
    let role = k.role(name);
    match registers {
        None => role.warps(1),
        some => role.warpgroups(1).registers_opt(some),
    }
}

/// What the threads of a role ask for by `setmaxnreg`.
pub(crate) struct Budget {
    /// What the role does: `loading`.
    pub(crate) role: &'static str,
    /// Its warpgroups.
    pub(crate) warpgroups: u32,
    /// Registers of a thread.
    pub(crate) registers: u32,
    /// The option that sets them.
    pub(crate) option: &'static str,
}

/// Rejects budgets that `setmaxnreg` does not take, or that are more together
/// than the CTA enters with: the last role to ask would wait for ever.
pub(crate) fn check_registers(all: &[Budget], target: &Target) -> Result<(), FamilyError> {
    let refuse = |text: String| Err(FamilyError::Config(text));
    for b in all {
        if !b.registers.is_multiple_of(8) || !(24..=240).contains(&b.registers) {
            return refuse(format!(
                "a thread of a role has 24 to 240 registers in steps of 8, not {} for {}\nhelp: change {}",
                b.registers, b.role, b.option
            ));
        }
    }
    let warpgroups: u32 = all.iter().map(|b| b.warpgroups).sum();
    let pool = target.entry_registers(128 * warpgroups) * warpgroups;
    let asked: u32 = all.iter().map(|b| b.warpgroups * b.registers).sum();
    if asked > pool {
        let each = all
            .iter()
            .map(|b| format!("{} for {}", b.registers, b.role));
        let each: Vec<_> = each.collect();
        return refuse(format!(
            "{warpgroups} warpgroups have {pool} registers for one thread of each; {} take {asked}, {} too many\n\
             help: lower {}",
            each.join(" and "),
            asked - pool,
            all[all.len() - 1].option
        ));
    }
    Ok(())
}
