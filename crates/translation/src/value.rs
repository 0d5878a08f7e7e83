//! Symbolic values of operands, in one form for both sides.
//!
//! The printer computes addresses and constants in temporary registers just before their use. A
//! value is the expression that such a register holds. Both sides write
//! `base + stage · bytes + offset` the same way, whichever instructions compute it.

use std::fmt;

/// The symbolic value of an operand.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum OperandValue<'a> {
    /// No operand.
    Absent,
    /// A constant: its bits, sign-extended.
    Number(u64),
    /// A register of the program: its class in PTX (`r`, `h`, `d`, `p`) and number.
    Reg(char, u32),
    /// A name: a special register or a modifier.
    Name(&'a str),
    /// A launch parameter, by position.
    Param(usize),
    /// The start of the CTA's shared memory.
    Shared,
    /// A sum of scaled terms and a constant; only [`plus`](OperandValue::plus) and
    /// [`times`](OperandValue::times) create it.
    Sum(Vec<(OperandValue<'a>, u64)>, u64),
    /// The result of an instruction on its operands.
    Computed(&'a str, Vec<OperandValue<'a>>),
    /// A list, in order.
    List(Vec<OperandValue<'a>>),
}

impl<'a> OperandValue<'a> {
    /// Returns the sum of two values in canonical form.
    pub(crate) fn plus(self, other: Self) -> Self {
        let (mut terms, constant) = self.terms();
        let (other_terms, other_constant) = other.terms();
        for (value, scale) in other_terms {
            match terms.iter_mut().find(|t| t.0 == value) {
                Some(term) => term.1 = term.1.wrapping_add(scale),
                None => terms.push((value, scale)),
            }
        }
        terms.retain(|t| t.1 != 0);
        terms.sort();
        Self::sum(terms, constant.wrapping_add(other_constant))
    }

    /// Returns a multiple of a value.
    pub(crate) fn times(self, n: u64) -> Self {
        let (mut terms, constant) = self.terms();
        terms.iter_mut().for_each(|t| t.1 = t.1.wrapping_mul(n));
        terms.retain(|t| t.1 != 0);
        Self::sum(terms, constant.wrapping_mul(n))
    }

    /// Wraps the constant of an address to 32 bits.
    pub(crate) fn wrap_to_32_bits(self) -> Self {
        let (terms, constant) = self.terms();
        Self::sum(terms, constant & u64::from(u32::MAX))
    }

    fn terms(self) -> (Vec<(Self, u64)>, u64) {
        match self {
            OperandValue::Number(n) => (vec![], n),
            OperandValue::Sum(terms, constant) => (terms, constant),
            other => (vec![(other, 1)], 0),
        }
    }

    fn sum(mut terms: Vec<(Self, u64)>, constant: u64) -> Self {
        match &terms[..] {
            [] => OperandValue::Number(constant),
            [(_, 1)] if constant == 0 => terms.remove(0).0,
            _ => OperandValue::Sum(terms, constant),
        }
    }

    /// Calls `f` for every leaf, from left to right.
    pub(crate) fn leaves(&self, f: &mut dyn FnMut(&Self)) {
        match self {
            OperandValue::Computed(_, values) | OperandValue::List(values) => {
                values.iter().for_each(|v| v.leaves(f))
            }
            OperandValue::Sum(terms, constant) => {
                terms.iter().for_each(|(v, _)| v.leaves(f));
                if *constant != 0 {
                    f(&OperandValue::Number(*constant));
                }
            }
            OperandValue::Absent => {}
            leaf => f(leaf),
        }
    }

    /// Returns a boolean fact as the name `yes` or `no`.
    pub(crate) fn flag(value: bool) -> Self {
        OperandValue::Name(if value { "yes" } else { "no" })
    }
}

impl From<u32> for OperandValue<'_> {
    fn from(n: u32) -> Self {
        OperandValue::Number(n.into())
    }
}

impl<'a> From<&'a str> for OperandValue<'a> {
    fn from(name: &'a str) -> Self {
        OperandValue::Name(name)
    }
}

impl fmt::Display for OperandValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OperandValue::Absent => f.write_str("none"),
            OperandValue::Number(n) => match *n as i64 {
                small if (-4096..0).contains(&small) => write!(f, "{small}"),
                _ => write!(f, "{n}"),
            },
            OperandValue::Reg(class, n) => write!(f, "%{class}{n}"),
            OperandValue::Name(name) => f.write_str(name),
            OperandValue::Param(i) => write!(f, "parameter {i}"),
            OperandValue::Shared => f.write_str("shared"),
            OperandValue::Sum(terms, constant) => {
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
            OperandValue::Computed(op, values) => write!(f, "{op}({})", CommaSeparated(values)),
            OperandValue::List(values) => write!(f, "{{{}}}", CommaSeparated(values)),
        }
    }
}

struct CommaSeparated<'v, 'a>(&'v [OperandValue<'a>]);

impl fmt::Display for CommaSeparated<'_, '_> {
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
    fn sums_have_a_canonical_form() {
        let stage = || OperandValue::Reg('r', 4).times(8);
        let a = OperandValue::Shared
            .plus(stage())
            .plus(OperandValue::Number(16));
        let b = OperandValue::Number(24)
            .plus(stage())
            .plus(OperandValue::Number(!7));
        assert_eq!(a, b.plus(OperandValue::Shared));
        assert_eq!(a.to_string(), "8·%r4 + shared + 16");
        assert_eq!(a.plus(stage().times(!0)).to_string(), "shared + 16");
        assert_eq!(
            OperandValue::Shared.plus(OperandValue::Number(0)),
            OperandValue::Shared
        );
        assert_eq!(
            OperandValue::Shared
                .plus(OperandValue::Number(1 << 32))
                .wrap_to_32_bits(),
            OperandValue::Shared
        );
    }
}
