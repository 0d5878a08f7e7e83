//! A parser that takes the modifiers and operands of an instruction one by one. A modifier or operand
//! that is not taken becomes an extra fact, which causes a mismatch.

use super::registers::Registers;
use super::statement::{Instruction, Operand};
use crate::action::{Action, ActionKind};
use crate::value::OperandValue;

/// The modifiers and operands of an instruction that are not yet taken.
pub(super) struct InstructionParser<'r, 'a> {
    modifiers: Vec<&'a str>,
    operands: std::slice::Iter<'r, Operand<'a>>,
    registers: &'r Registers<'a>,
}

impl<'r, 'a> InstructionParser<'r, 'a> {
    pub(super) fn new(instruction: &'r Instruction<'a>, registers: &'r Registers<'a>) -> Self {
        Self {
            modifiers: instruction.opcode.split('.').skip(1).collect(),
            operands: instruction.operands.iter(),
            registers,
        }
    }

    /// Takes the next modifier.
    pub(super) fn next_modifier(&mut self) -> &'a str {
        match self.modifiers.is_empty() {
            true => "",
            false => self.modifiers.remove(0),
        }
    }

    /// Takes a modifier; returns whether it was present.
    pub(super) fn take_modifier(&mut self, modifier: &str) -> bool {
        self.take_matching(|m| m == modifier).is_some()
    }

    /// Takes the first modifier that matches.
    pub(super) fn take_matching(&mut self, matches: impl Fn(&str) -> bool) -> Option<&'a str> {
        let at = self.modifiers.iter().position(|m| matches(m))?;
        Some(self.modifiers.remove(at))
    }

    /// Takes the first modifier that is in `list`; returns `default`, the meaning in PTX, if there is none.
    pub(super) fn take_one_of(&mut self, list: &[&str], default: &'static str) -> OperandValue<'a> {
        OperandValue::Name(self.take_matching(|m| list.contains(&m)).unwrap_or(default))
    }

    /// Takes all remaining modifiers.
    pub(super) fn remaining_modifiers(&mut self) -> OperandValue<'a> {
        let rest = std::mem::take(&mut self.modifiers);
        OperandValue::List(rest.into_iter().map(OperandValue::Name).collect())
    }

    /// Takes the state space of an address.
    pub(super) fn space(&mut self) -> OperandValue<'a> {
        match self.take_matching(is_space) {
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
    pub(super) fn shared_address(&mut self) -> OperandValue<'a> {
        self.operand().wrap_to_32_bits()
    }

    /// Takes the next operand if it is present.
    pub(super) fn operand_if(&mut self, present: bool) -> OperandValue<'a> {
        if present {
            self.operand()
        } else {
            OperandValue::Absent
        }
    }

    /// Returns the number of remaining operands.
    pub(super) fn remaining_operands(&self) -> usize {
        self.operands.len()
    }

    /// Returns the action, with the remaining modifiers and operands as extra facts.
    pub(super) fn finish(mut self, mut action: Action<'a>) -> Action<'a> {
        if !self.modifiers.is_empty() {
            action = action.with("extra modifiers", self.remaining_modifiers());
        }
        while self.remaining_operands() > 0 {
            action = action.with("extra operand", self.operand());
        }
        action
    }

    /// Returns the action of an unknown instruction.
    pub(super) fn unknown(mut self) -> Action<'a> {
        let action = Action::new(ActionKind::Unknown).with("modifiers", self.remaining_modifiers());
        self.finish(action)
    }
}

/// Returns whether a modifier is a state space.
fn is_space(modifier: &str) -> bool {
    matches!(
        modifier,
        "global" | "shared" | "shared::cta" | "shared::cluster" | "param"
    )
}
