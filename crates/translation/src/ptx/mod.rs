//! The PTX side: an independent parser of the text.
//!
//! It relies on the ISA and on two properties of the printer: a program register keeps its number,
//! and statements are in program order.

mod copies;
mod entry;
mod flow;
mod instruction;
mod instruction_parser;
mod memory;
mod mma;
mod module;
mod registers;
mod statement;
mod synchronization;

pub(crate) use module::TextLine;

use crate::action::Action;
use crate::mismatch::Mismatch;

/// An action of the PTX, with its line.
#[derive(Clone, Debug)]
pub(crate) struct PtxAction<'a> {
    pub(crate) action: Action<'a>,
    pub(crate) line: TextLine<'a>,
}

/// Parses a text into actions, in text order; `registers` is the number of program registers.
pub(crate) fn read(text: &str, registers: u32) -> Result<Vec<PtxAction<'_>>, Mismatch> {
    let module = module::Module::read(text)?;
    let mut actions = entry::actions(&module);
    actions.extend(flow::actions(&module, registers));
    Ok(actions)
}
