//! Symbolic contents of registers.
//!
//! A program register keeps its number in PTX and represents itself. The printer's temporaries
//! (higher numbers and named registers) represent the expression that was computed into them. The
//! expression is valid inside one basic block, while the registers that it reads do not change.

use super::statement::Operand;
use crate::value::OperandValue;
use std::collections::HashMap;

/// The registers at one position of the text.
pub(super) struct Registers<'a> {
    /// The number of program registers.
    program: u32,
    params: HashMap<&'a str, usize>,
    shared: Option<&'a str>,
    /// The value of each temporary, and when it was computed.
    temporaries: HashMap<&'a str, (OperandValue<'a>, u64)>,
    /// The time of the last write of each program register.
    written: Vec<u64>,
    /// The current time: the number of writes and labels.
    clock: u64,
    /// The time of the last label.
    label: u64,
}

impl<'a> Registers<'a> {
    pub(super) fn new(
        program: u32,
        params: HashMap<&'a str, usize>,
        shared: Option<&'a str>,
    ) -> Self {
        Self {
            program,
            params,
            shared,
            temporaries: HashMap::new(),
            written: vec![0; program as usize],
            clock: 0,
            label: 0,
        }
    }

    /// Passes a label. Control may come from elsewhere, so values that read program registers become stale.
    pub(super) fn pass_label(&mut self) {
        self.clock += 1;
        self.label = self.clock;
    }

    /// Records a write of a program register; returns `None` for a temporary.
    pub(super) fn write_program_register(&mut self, name: &str) -> Option<OperandValue<'a>> {
        let (class, number) = self.program_register(name)?;
        self.clock += 1;
        self.written[number as usize] = self.clock;
        Some(OperandValue::Reg(class, number))
    }

    /// Records the value of a temporary.
    pub(super) fn set_temporary(&mut self, name: &'a str, value: OperandValue<'a>) {
        self.clock += 1;
        self.temporaries.insert(name, (value, self.clock));
    }

    /// Returns the value of an operand.
    pub(super) fn value(&self, operand: &Operand<'a>) -> OperandValue<'a> {
        match operand {
            Operand::Word(word) => self.word(word),
            Operand::Pair(a, b) => OperandValue::List(vec![self.word(a), self.word(b)]),
            Operand::List(operands) => {
                OperandValue::List(operands.iter().map(|o| self.value(o)).collect())
            }
            Operand::Memory(all) => match &all[..] {
                [one] => self.value(one),
                several => OperandValue::List(several.iter().map(|o| self.value(o)).collect()),
            },
        }
    }

    /// Returns the value of a word: a register, a constant, a name, or a sum.
    pub(super) fn word(&self, word: &'a str) -> OperandValue<'a> {
        match word.split_once('+') {
            Some((a, b)) => self.word(a).plus(self.word(b)),
            None if word == "_" => OperandValue::Absent,
            None => number(word).map_or_else(|| self.name(word), OperandValue::Number),
        }
    }

    fn name(&self, name: &'a str) -> OperandValue<'a> {
        if let Some((class, number)) = self.program_register(name) {
            return OperandValue::Reg(class, number);
        }
        match self.temporaries.get(name) {
            Some((value, at)) if self.is_valid(value, *at) => value.clone(),
            // A stale temporary keeps its name, which matches no program value.
            Some(_) => OperandValue::Name(name),
            None if self.shared == Some(name) => OperandValue::Shared,
            None => self
                .params
                .get(name)
                .map_or(OperandValue::Name(name), |&i| OperandValue::Param(i)),
        }
    }

    /// Returns whether a value that was computed at time `at` is still valid.
    fn is_valid(&self, value: &OperandValue<'a>, at: u64) -> bool {
        let mut valid = true;
        value.leaves(&mut |leaf| {
            if let OperandValue::Reg(_, n) = leaf {
                valid &= at > self.label && at > self.written[*n as usize];
            }
        });
        valid
    }

    /// Returns class and number of a program register.
    fn program_register(&self, name: &str) -> Option<(char, u32)> {
        let mut rest = name.strip_prefix('%')?.chars();
        let class = rest.next().filter(|c| "rhdp".contains(*c))?;
        let digits = rest.as_str();
        if !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let number = digits.parse().ok().filter(|n| *n < self.program)?;
        Some((class, number))
    }
}

/// Parses a constant to its bits, sign-extended.
pub(super) fn number(word: &str) -> Option<u64> {
    if let Some(float) = word.strip_prefix("0f") {
        return u64::from_str_radix(float, 16).ok();
    }
    let (negative, digits) = match word.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, word),
    };
    let bits = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?,
        None if digits.starts_with(|c: char| c.is_ascii_digit()) => digits.parse().ok()?,
        None => return None,
    };
    Some(if negative { bits.wrapping_neg() } else { bits })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_parsed_to_their_bits() {
        assert_eq!(number("0f3F800000"), Some(0x3f80_0000));
        assert_eq!(number("-16"), Some((-16i64) as u64));
        assert_eq!(number("0xffffffff"), Some(0xffff_ffff));
        assert_eq!(number("18446744073709551600"), Some(!15));
        assert_eq!(number("%r1"), None);
        assert_eq!(number("$end_1"), None);
    }

    #[test]
    fn a_temporary_represents_its_expression_until_a_source_changes() {
        let mut registers = Registers::new(10, HashMap::new(), Some("smem"));
        let sum = || {
            OperandValue::Reg('r', 3)
                .times(8)
                .plus(OperandValue::Shared)
        };
        registers.set_temporary("%r10", sum());
        assert_eq!(
            registers.word("%r10+16"),
            sum().plus(OperandValue::Number(16))
        );
        // The stage register changes, so the address is stale.
        assert_eq!(
            registers.write_program_register("%r3"),
            Some(OperandValue::Reg('r', 3))
        );
        assert_eq!(registers.word("%r10"), OperandValue::Name("%r10"));
        assert_eq!(registers.write_program_register("%r10"), None);
        registers.set_temporary("%r10", sum());
        assert_eq!(registers.word("%r10"), sum());
        registers.pass_label();
        assert_eq!(registers.word("%r10"), OperandValue::Name("%r10"));
        assert_eq!(registers.word("smem"), OperandValue::Shared);
    }
}
