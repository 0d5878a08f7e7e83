//! The parts of an instruction, taken one by one: what nobody takes is a difference.

use super::registers::Registers;
use super::statement::{Instruction, Operand};
use crate::act::{Act, Kind};
use crate::value::Value;

/// An instruction whose modifiers and operands are taken until none is left.
pub(super) struct Parts<'r, 'a> {
    modifiers: Vec<&'a str>,
    operands: std::slice::Iter<'r, Operand<'a>>,
    registers: &'r Registers<'a>,
}

impl<'r, 'a> Parts<'r, 'a> {
    pub(super) fn new(instruction: &'r Instruction<'a>, registers: &'r Registers<'a>) -> Self {
        Self {
            modifiers: instruction.opcode.split('.').skip(1).collect(),
            operands: instruction.operands.iter(),
            registers,
        }
    }

    /// The next modifier.
    pub(super) fn next(&mut self) -> &'a str {
        match self.modifiers.is_empty() {
            true => "",
            false => self.modifiers.remove(0),
        }
    }

    /// Is there such a modifier?
    pub(super) fn take(&mut self, modifier: &str) -> bool {
        self.any(|m| m == modifier).is_some()
    }

    /// The first modifier that fits.
    pub(super) fn any(&mut self, fits: impl Fn(&str) -> bool) -> Option<&'a str> {
        let at = self.modifiers.iter().position(|m| fits(m))?;
        Some(self.modifiers.remove(at))
    }

    /// The first modifier of a list, or what PTX takes without one.
    pub(super) fn one_of(&mut self, list: &[&str], otherwise: &'static str) -> Value<'a> {
        Value::Name(self.any(|m| list.contains(&m)).unwrap_or(otherwise))
    }

    /// The modifiers that are left.
    pub(super) fn rest(&mut self) -> Value<'a> {
        let rest = std::mem::take(&mut self.modifiers);
        Value::List(rest.into_iter().map(Value::Name).collect())
    }

    /// The state space of an address.
    pub(super) fn space(&mut self) -> Value<'a> {
        match self.any(is_space) {
            // Without a CTA or cluster it is the CTA's own.
            Some("shared") => Value::Name("shared::cta"),
            Some(space) => Value::Name(space),
            None => Value::Nothing,
        }
    }

    /// The next operand.
    pub(super) fn operand(&mut self) -> Value<'a> {
        let next = self.operands.next();
        next.map_or(Value::Nothing, |o| self.registers.value(o))
    }

    /// The next operand, an address of shared memory.
    pub(super) fn shared(&mut self) -> Value<'a> {
        self.operand().wrapped()
    }

    /// The next operand, if there must be one.
    pub(super) fn when(&mut self, is: bool) -> Value<'a> {
        if is { self.operand() } else { Value::Nothing }
    }

    /// How many operands are left.
    pub(super) fn len(&self) -> usize {
        self.operands.len()
    }

    /// The act, with what nobody took.
    pub(super) fn done(mut self, mut act: Act<'a>) -> Act<'a> {
        if !self.modifiers.is_empty() {
            act = act.with("more modifiers", self.rest());
        }
        while self.len() > 0 {
            act = act.with("one more operand", self.operand());
        }
        act
    }

    /// An act of which nothing is known but its modifiers.
    pub(super) fn unknown(mut self) -> Act<'a> {
        let act = Act::new(Kind::Unknown).with("modifiers", self.rest());
        self.done(act)
    }
}

/// Is it a state space?
fn is_space(modifier: &str) -> bool {
    matches!(
        modifier,
        "global" | "shared" | "shared::cta" | "shared::cluster" | "param"
    )
}
