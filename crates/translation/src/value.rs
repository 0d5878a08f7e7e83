//! What an operand stands for, on either side.
//!
//! The printer works out addresses and constants in registers of its own just
//! before their use. A value is what such a register comes to: both sides
//! write `base + stage · bytes + offset` the same way, whatever instructions
//! it took.

use std::fmt;

/// The value of an operand.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Value<'a> {
    /// No operand.
    Nothing,
    /// A constant: its bits, sign-extended.
    Number(u64),
    /// A register of the program: its class in PTX (`r`, `h`, `d`, `p`) and number.
    Reg(char, u32),
    /// A word: a special register, a choice of an instruction.
    Name(&'a str),
    /// A launch parameter, by position.
    Param(usize),
    /// The start of the CTA's shared memory.
    Shared,
    /// A sum of multiples and a constant; made by [`plus`](Value::plus) alone.
    Sum(Vec<(Value<'a>, u64)>, u64),
    /// What an instruction makes of its operands.
    Made(&'a str, Vec<Value<'a>>),
    /// Several, in order.
    List(Vec<Value<'a>>),
}

impl<'a> Value<'a> {
    /// The sum of two values, in one form whatever the order.
    pub(crate) fn plus(self, other: Self) -> Self {
        let (mut terms, constant) = self.terms();
        let (more, rest) = other.terms();
        for (value, scale) in more {
            match terms.iter_mut().find(|t| t.0 == value) {
                Some(known) => known.1 = known.1.wrapping_add(scale),
                None => terms.push((value, scale)),
            }
        }
        terms.retain(|t| t.1 != 0);
        terms.sort();
        Self::sum(terms, constant.wrapping_add(rest))
    }

    /// A multiple of a value.
    pub(crate) fn times(self, n: u64) -> Self {
        let (mut terms, constant) = self.terms();
        terms.iter_mut().for_each(|t| t.1 = t.1.wrapping_mul(n));
        terms.retain(|t| t.1 != 0);
        Self::sum(terms, constant.wrapping_mul(n))
    }

    /// The same address of 32 bits, whose constant wraps.
    pub(crate) fn wrapped(self) -> Self {
        let (terms, constant) = self.terms();
        Self::sum(terms, constant & u64::from(u32::MAX))
    }

    fn terms(self) -> (Vec<(Self, u64)>, u64) {
        match self {
            Value::Number(n) => (vec![], n),
            Value::Sum(terms, constant) => (terms, constant),
            other => (vec![(other, 1)], 0),
        }
    }

    fn sum(mut terms: Vec<(Self, u64)>, constant: u64) -> Self {
        match &terms[..] {
            [] => Value::Number(constant),
            [(_, 1)] if constant == 0 => terms.remove(0).0,
            _ => Value::Sum(terms, constant),
        }
    }

    /// Calls `f` for what it is made of, from left to right.
    pub(crate) fn leaves(&self, f: &mut dyn FnMut(&Self)) {
        match self {
            Value::Made(_, all) | Value::List(all) => all.iter().for_each(|v| v.leaves(f)),
            Value::Sum(terms, constant) => {
                terms.iter().for_each(|(v, _)| v.leaves(f));
                if *constant != 0 {
                    f(&Value::Number(*constant));
                }
            }
            Value::Nothing => {}
            leaf => f(leaf),
        }
    }

    /// `yes` or `no`.
    pub(crate) fn yes(is: bool) -> Self {
        Value::Name(if is { "yes" } else { "no" })
    }
}

impl From<u32> for Value<'_> {
    fn from(n: u32) -> Self {
        Value::Number(n.into())
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(name: &'a str) -> Self {
        Value::Name(name)
    }
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Nothing => f.write_str("none"),
            Value::Number(n) => match *n as i64 {
                small if (-4096..0).contains(&small) => write!(f, "{small}"),
                _ => write!(f, "{n}"),
            },
            Value::Reg(class, n) => write!(f, "%{class}{n}"),
            Value::Name(name) => f.write_str(name),
            Value::Param(i) => write!(f, "parameter {i}"),
            Value::Shared => f.write_str("shared"),
            Value::Sum(terms, constant) => {
                for (i, (value, scale)) in terms.iter().enumerate() {
                    let plus = if i > 0 { " + " } else { "" };
                    match scale {
                        1 => write!(f, "{plus}{value}")?,
                        n => write!(f, "{plus}{n}·{value}")?,
                    }
                }
                match constant {
                    0 => Ok(()),
                    n => write!(f, " + {n}"),
                }
            }
            Value::Made(op, all) => write!(f, "{op}({})", Listed(all)),
            Value::List(all) => write!(f, "{{{}}}", Listed(all)),
        }
    }
}

struct Listed<'v, 'a>(&'v [Value<'a>]);

impl fmt::Display for Listed<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, value) in self.0.iter().enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            write!(f, "{comma}{value}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_have_one_form() {
        let stage = || Value::Reg('r', 4).times(8);
        let a = Value::Shared.plus(stage()).plus(Value::Number(16));
        let b = Value::Number(24).plus(stage()).plus(Value::Number(!7));
        assert_eq!(a, b.plus(Value::Shared));
        assert_eq!(a.to_string(), "8·%r4 + shared + 16");
        assert_eq!(a.plus(stage().times(!0)).to_string(), "shared + 16");
        assert_eq!(Value::Shared.plus(Value::Number(0)), Value::Shared);
        assert_eq!(
            Value::Shared.plus(Value::Number(1 << 32)).wrapped(),
            Value::Shared
        );
    }
}
