//! The modifiers and operands of an instruction, taken one by one. Parts that the parser does not
//! take become extra facts, so that they cause a mismatch.

use super::registers::Registers;
use super::statement::{Instruction, Operand};
use crate::action::{Action, ActionKind};
use crate::value::OperandValue;

/// The modifiers and operands of an instruction that are not taken yet.
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

    /// Takes the next modifier.
    pub(super) fn next(&mut self) -> &'a str {
        match self.modifiers.is_empty() {
            true => "",
            false => self.modifiers.remove(0),
        }
    }

    /// Takes a modifier; returns whether it was present.
    pub(super) fn take(&mut self, modifier: &str) -> bool {
        self.any(|m| m == modifier).is_some()
    }

    /// Takes the first modifier that matches.
    pub(super) fn any(&mut self, matches: impl Fn(&str) -> bool) -> Option<&'a str> {
        let at = self.modifiers.iter().position(|m| matches(m))?;
        Some(self.modifiers.remove(at))
    }

    /// Takes the first modifier that is in a list; returns the PTX default if there is none.
    pub(super) fn one_of(&mut self, list: &[&str], otherwise: &'static str) -> OperandValue<'a> {
        OperandValue::Name(self.any(|m| list.contains(&m)).unwrap_or(otherwise))
    }

    /// Takes all remaining modifiers.
    pub(super) fn rest(&mut self) -> OperandValue<'a> {
        let rest = std::mem::take(&mut self.modifiers);
        OperandValue::List(rest.into_iter().map(OperandValue::Name).collect())
    }

    /// Takes the state space of an address.
    pub(super) fn space(&mut self) -> OperandValue<'a> {
        match self.any(is_space) {
            // `.shared` means `.shared::cta`.
            Some("shared") => OperandValue::Name("shared::cta"),
            Some(space) => OperandValue::Name(space),
            None => OperandValue::Absent,
        }
    }

    /// Takes the next operand.
    pub(super) fn operand(&mut self) -> OperandValue<'a> {
        let next = self.operands.next();
        next.map_or(OperandValue::Absent, |o| self.registers.value(o))
    }

    /// Takes the next operand, a shared-memory address.
    pub(super) fn shared(&mut self) -> OperandValue<'a> {
        self.operand().wrapped()
    }

    /// Takes the next operand if `is` is true.
    pub(super) fn when(&mut self, is: bool) -> OperandValue<'a> {
        if is {
            self.operand()
        } else {
            OperandValue::Absent
        }
    }

    /// Returns the number of remaining operands.
    pub(super) fn len(&self) -> usize {
        self.operands.len()
    }

    /// Returns the action, with the remaining parts as extra facts.
    pub(super) fn done(mut self, mut action: Action<'a>) -> Action<'a> {
        if !self.modifiers.is_empty() {
            action = action.with("extra modifiers", self.rest());
        }
        while self.len() > 0 {
            action = action.with("extra operand", self.operand());
        }
        action
    }

    /// Returns the action of an unknown instruction.
    pub(super) fn unknown(mut self) -> Action<'a> {
        let action = Action::new(ActionKind::Unknown).with("modifiers", self.rest());
        self.done(action)
    }
}

/// Whether a modifier is a state space.
fn is_space(modifier: &str) -> bool {
    matches!(
        modifier,
        "global" | "shared" | "shared::cta" | "shared::cluster" | "param"
    )
}
