//! The program side: converts statements to actions from the fields of their ops.
//!
//! It never uses the PTX that an op prints: printer and check share only the kernel and the ISA.

mod copies;
mod entry;
mod flow;
mod memory;
mod mma;
mod op;
mod operand_converter;
mod synchronization;

pub(crate) use entry::entry_name;

use crate::action::Action;
use warpline_ir::{Kernel, Loc, RoleId};

/// An action of the program, with its source location and role.
#[derive(Clone, Debug)]
pub(crate) struct ProgramAction<'a> {
    pub(crate) action: Action<'a>,
    pub(crate) at: Option<Loc>,
    pub(crate) role: Option<RoleId>,
}

/// Returns the actions of a kernel in program order; `name` is the name of the entry.
pub(crate) fn read<'a>(kernel: &'a Kernel, name: &'a str) -> Vec<ProgramAction<'a>> {
    let mut actions = entry::actions(kernel, name);
    actions.extend(flow::actions(kernel));
    actions
}
