//! What a register holds, as far as the protocol knows.

use super::term::{Arg, Sym, TermId};
use std::rc::Rc;
use warpline_ir::{Mask, WARP};

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
    /// Unknown, and not the same in every lane.
    Opaque,
}

/// A register: its value, and the lanes that have it.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Held {
    pub(super) val: Val,
    pub(super) lanes: Mask,
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
    pub(super) fn get(&self, lanes: Mask) -> Val {
        if lanes & !self.lanes == 0 {
            self.val.clone()
        } else {
            Val::Opaque
        }
    }

    /// Sets it in some lanes.
    pub(super) fn set(&mut self, lanes: Mask, val: Val) {
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
            (Some(old), Some(new)) => {
                let mixed =
                    std::array::from_fn(|l| if lanes >> l & 1 == 1 { new[l] } else { old[l] });
                self.val = Val::of(&mixed, lanes | rest);
                self.lanes |= lanes;
            }
            // Lanes that run apart rarely meet over a register: the others are unknown.
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

    /// As an operand of a term, if it is the same in every lane.
    pub(super) fn arg(&self) -> Option<Arg> {
        match *self {
            Val::Uni(x) => Some(Arg::Num(x as i64)),
            Val::Sym(s) => Some(Arg::Sym(s)),
            Val::Pred { term, not } => Some(Arg::Pred { term, not }),
            Val::Lanes(_) | Val::Opaque => None,
        }
    }
}

impl From<Arg> for Val {
    fn from(a: Arg) -> Self {
        match a {
            Arg::Num(x) => Val::Uni(x as u64),
            Arg::Sym(s) => Val::Sym(s),
            Arg::Pred { term, not } => Val::Pred { term, not },
        }
    }
}
