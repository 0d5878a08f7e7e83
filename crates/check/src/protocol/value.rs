//! The value of a register, as far as the search knows it.

use super::lanes::{ELECTED, LaneSet};
use crate::symbolic::{Arg, Sym, TermId};
use std::rc::Rc;
use warpline_ir::{Mask, Type, WARP};

/// A value of a warp's register.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Val {
    /// The same number in every lane.
    Uni(u64),
    /// A number per lane.
    Lanes(Rc<[u64; WARP]>),
    /// The same term in every lane.
    Sym(Sym),
    /// The same predicate in every lane.
    Pred { term: TermId, not: bool },
    /// Unknown integers from the first to the second, perhaps another in each lane.
    Within(u64, u64),
    /// Unknown, and perhaps another in each lane.
    Opaque,
}

/// A register: its value, and the lanes that have it.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Held {
    pub(super) val: Val,
    pub(super) lanes: LaneSet,
}

impl Default for Held {
    /// Nothing, in any lane.
    fn default() -> Self {
        Self {
            val: Val::Opaque,
            lanes: 0,
        }
    }
}

impl Held {
    /// The value in some lanes.
    pub(super) fn get(&self, lanes: LaneSet) -> Val {
        match &self.val {
            // Which of the numbers the elected lane has is not known.
            Val::Lanes(_) if lanes == ELECTED => Val::Opaque,
            val if lanes & !self.lanes == 0 => val.clone(),
            _ => Val::Opaque,
        }
    }

    /// Sets it in some lanes.
    pub(super) fn set(&mut self, lanes: LaneSet, val: Val) {
        let rest = self.lanes & !lanes;
        if rest == 0 || self.val == val {
            self.lanes |= lanes;
            self.val = val;
            if rest == 0 {
                self.lanes = lanes;
            }
            return;
        }
        match (self.val.numbers(), val.numbers()) {
            (Some(old), Some(new)) if lanes != ELECTED => {
                let mixed =
                    std::array::from_fn(|l| if lanes >> l & 1 == 1 { new[l] } else { old[l] });
                // The elected lane has one of the two.
                self.lanes = (self.lanes | lanes) & !ELECTED;
                self.val = Val::of(&mixed, self.lanes as Mask);
            }
            // Lanes that run apart rarely meet over a register: the others are unknown, and which
            // of them is the elected one is never known.
            _ => {
                self.val = val;
                self.lanes = lanes;
            }
        }
    }
}

impl Val {
    /// From numbers of some lanes.
    pub(super) fn of(numbers: &[u64; WARP], lanes: Mask) -> Self {
        let first = numbers[lanes.trailing_zeros().min(31) as usize];
        let same = (0..WARP).all(|l| lanes >> l & 1 == 0 || numbers[l] == first);
        match same {
            true => Val::Uni(first),
            false => Val::Lanes(Rc::new(*numbers)),
        }
    }

    /// The number in every lane, if it is known.
    pub(super) fn numbers(&self) -> Option<[u64; WARP]> {
        match self {
            Val::Uni(x) => Some([*x; WARP]),
            Val::Lanes(x) => Some(**x),
            _ => None,
        }
    }

    /// As an operand of a term, if it is the same in every lane. A number is read as a type.
    pub(super) fn arg(&self, ty: Type) -> Option<Arg> {
        match *self {
            Val::Uni(x) => Some(Arg::Num(number(x, ty))),
            Val::Sym(s) => Some(Arg::Sym(s)),
            Val::Pred { term, not } => Some(Arg::Pred { term, not }),
            Val::Lanes(_) | Val::Within(..) | Val::Opaque => None,
        }
    }
}

/// The integer that bits are under a type.
pub(super) fn number(bits: u64, ty: Type) -> i128 {
    match ty {
        Type::U8 => i128::from(bits as u8),
        Type::I32 => i128::from(bits as u32 as i32),
        Type::I64 => i128::from(bits as i64),
        Type::U64 => i128::from(bits),
        ty if ty.bytes() == 2 => i128::from(bits as u16),
        _ => i128::from(bits as u32),
    }
}

/// The bits of an integer under a type.
pub(super) fn bits(x: i128, ty: Type) -> u64 {
    match ty {
        Type::Pred => u64::from(x != 0),
        ty => x as u64 & (u64::MAX >> (64 - 8 * ty.bytes())),
    }
}

impl Val {
    /// A register of a type that holds an operand.
    pub(super) fn from_arg(a: Arg, ty: Type) -> Self {
        match a {
            Arg::Num(x) => Val::Uni(bits(x, ty)),
            Arg::Sym(s) => Val::Sym(s),
            Arg::Pred { term, not } => Val::Pred { term, not },
        }
    }
}
