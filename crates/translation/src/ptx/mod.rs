//! The PTX side: an independent small reader of the text.
//!
//! It knows PTX as the ISA describes it, and of the printer two things alone:
//! that a register of the program keeps its number, and that statements come
//! in program order.

mod copies;
mod entry;
mod flow;
mod instruction;
mod memory;
mod module;
mod parts;
mod products;
mod registers;
mod statement;
mod synchronise;

pub(crate) use module::Line;

use crate::act::Act;
use crate::mismatch::Mismatch;

/// An act of the text, and its line.
#[derive(Clone, Debug)]
pub(crate) struct Said<'a> {
    pub(crate) act: Act<'a>,
    pub(crate) line: Line<'a>,
}

/// The acts of a text whose program has so many registers, in the order of the text.
pub(crate) fn read(text: &str, registers: u32) -> Result<Vec<Said<'_>>, Mismatch> {
    let module = module::Module::read(text)?;
    let mut said = entry::acts(&module);
    said.extend(flow::acts(&module, registers));
    Ok(said)
}
