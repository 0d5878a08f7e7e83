//! What registers hold.
//!
//! A register of the program keeps its number in PTX, and stands for itself.
//! Registers that the printer made, from the next number on and those with
//! names, stand for what was worked out into them: inside one straight run of
//! instructions, as long as no register changes that they were worked out
//! from.

use super::statement::Operand;
use crate::value::Value;
use std::collections::HashMap;

/// The registers of an entry, at one place in the text.
pub(super) struct Registers<'a> {
    /// Registers of the program: numbers below this.
    program: u32,
    params: HashMap<&'a str, usize>,
    shared: Option<&'a str>,
    known: HashMap<&'a str, (Value<'a>, u64)>,
    /// When each register of the program was last written.
    written: Vec<u64>,
    /// Counts writes.
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
            known: HashMap::new(),
            written: vec![0; program as usize],
            clock: 0,
            label: 0,
        }
    }

    /// A label: who comes here may come from elsewhere.
    pub(super) fn label(&mut self) {
        self.clock += 1;
        self.label = self.clock;
    }

    /// A register of the program is written; of another one, nothing is done.
    pub(super) fn write(&mut self, name: &str) -> Option<Value<'a>> {
        let (class, number) = self.program_register(name)?;
        self.clock += 1;
        self.written[number as usize] = self.clock;
        Some(Value::Reg(class, number))
    }

    /// A register of the printer's gets a value.
    pub(super) fn keep(&mut self, name: &'a str, value: Value<'a>) {
        self.clock += 1;
        self.known.insert(name, (value, self.clock));
    }

    /// The value of an operand.
    pub(super) fn value(&self, operand: &Operand<'a>) -> Value<'a> {
        match operand {
            Operand::Word(word) => self.word(word),
            Operand::Both(a, b) => Value::List(vec![self.word(a), self.word(b)]),
            Operand::List(all) => Value::List(all.iter().map(|o| self.value(o)).collect()),
            Operand::Memory(all) => match &all[..] {
                [one] => self.value(one),
                several => Value::List(several.iter().map(|o| self.value(o)).collect()),
            },
        }
    }

    /// The value of a word: a register, a constant, a name, or a sum.
    pub(super) fn word(&self, word: &'a str) -> Value<'a> {
        match word.split_once('+') {
            Some((a, b)) => self.word(a).plus(self.word(b)),
            None if word == "_" => Value::Nothing,
            None => number(word).map_or_else(|| self.name(word), Value::Number),
        }
    }

    fn name(&self, name: &'a str) -> Value<'a> {
        if let Some((class, number)) = self.program_register(name) {
            return Value::Reg(class, number);
        }
        match self.known.get(name) {
            Some((value, at)) if self.holds(value, *at) => value.clone(),
            // Under its own name it equals nothing that a program says.
            Some(_) => Value::Name(name),
            None if self.shared == Some(name) => Value::Shared,
            None => self
                .params
                .get(name)
                .map_or(Value::Name(name), |&i| Value::Param(i)),
        }
    }

    /// Is a value that was worked out at a time still what it was?
    fn holds(&self, value: &Value<'a>, at: u64) -> bool {
        let mut holds = true;
        value.leaves(&mut |leaf| {
            if let Value::Reg(_, n) = leaf {
                holds &= at > self.label && at > self.written[*n as usize];
            }
        });
        holds
    }

    /// Class and number of a register of the program.
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

/// A constant: its bits, sign-extended.
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
    fn constants() {
        assert_eq!(number("0f3F800000"), Some(0x3f80_0000));
        assert_eq!(number("-16"), Some((-16i64) as u64));
        assert_eq!(number("0xffffffff"), Some(0xffff_ffff));
        assert_eq!(number("18446744073709551600"), Some(!15));
        assert_eq!(number("%r1"), None);
        assert_eq!(number("$end_1"), None);
    }

    #[test]
    fn a_register_of_the_printer_stands_for_what_was_worked_out() {
        let mut registers = Registers::new(10, HashMap::new(), Some("smem"));
        let sum = || Value::Reg('r', 3).times(8).plus(Value::Shared);
        registers.keep("%r10", sum());
        assert_eq!(registers.word("%r10+16"), sum().plus(Value::Number(16)));
        // The stage moves on: the address is of the stage before.
        assert_eq!(registers.write("%r3"), Some(Value::Reg('r', 3)));
        assert_eq!(registers.word("%r10"), Value::Name("%r10"));
        assert_eq!(registers.write("%r10"), None);
        registers.keep("%r10", sum());
        assert_eq!(registers.word("%r10"), sum());
        registers.label();
        assert_eq!(registers.word("%r10"), Value::Name("%r10"));
        assert_eq!(registers.word("smem"), Value::Shared);
    }
}
