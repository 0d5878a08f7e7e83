//! The program's side: what each statement asks for, from the fields of its ops.
//!
//! Nothing here asks an op for its PTX: what the printer and this side both
//! know is the program and the ISA.

mod copies;
mod entry;
mod flow;
mod memory;
mod op;
mod products;
mod synchronise;
mod terms;

pub(crate) use entry::name;

use crate::act::Act;
use warpline_ir::{Kernel, Loc, RoleId};

/// An act of the program, and the statement it is of.
#[derive(Clone, Debug)]
pub(crate) struct Meant<'a> {
    pub(crate) act: Act<'a>,
    pub(crate) at: Option<Loc>,
    pub(crate) role: Option<RoleId>,
}

/// The acts of a kernel whose entry has a name, in program order.
pub(crate) fn read<'a>(kernel: &'a Kernel, name: &'a str) -> Vec<Meant<'a>> {
    let mut meant = entry::acts(kernel, name);
    meant.extend(flow::acts(kernel));
    meant
}
