//! The results of a computation that waits for a trip count, for every possible count.
//!
//! A warp that waits for a trip count does nothing until the count is known. Then it computes the
//! stage and the parity of the ring that it continues in. Two states in which it waits are equal
//! if the results are equal for every count.

use super::code::{Act, Code};
use super::state::{Status, Warp};
use super::value::Val;
use super::world::World;
use crate::symbolic::{Node, Question};
use rustc_hash::FxHashMap;
use warpline_ir::{Mask, Op, Operand, Type};

/// The most counts that are told apart.
const MOST: i64 = 64;

/// Where a warp is once it has computed, and what its registers hold.
pub(super) struct Outcome {
    pub(super) end: u32,
    /// By slot that it writes: the number for each count that leaves another remainder.
    pub(super) numbers: FxHashMap<u32, Vec<u64>>,
}

impl World<'_, '_> {
    /// What comes of the sum that a warp waits for the count of, if that is all it waits for.
    pub(super) fn outcome(&self, w: &Warp) -> Option<Outcome> {
        let Status::Asks(Question::RunsMoreThan { of, .. }) = w.status else {
            return None;
        };
        let env = self.env;
        if w.active != Mask::MAX {
            return None;
        }
        if !(1..=MOST).contains(&env.period) || !matches!(env.terms.node(of), Node::Loop { .. }) {
            return None;
        }
        let program = &env.programs[w.role as usize];
        let waits = |o: &Operand| match o {
            Operand::Reg(r) => env.sums[r.index()],
            Operand::Imm(_) => false,
        };
        match &program.code[w.pc as usize] {
            Code::Act(a) if a.args.iter().any(waits) => {}
            _ => return None,
        }
        let mut outcome = Outcome {
            end: w.pc,
            numbers: FxHashMap::default(),
        };
        // Straight on, as far as it computes with nothing but numbers.
        while let Code::Act(a) = &program.code[outcome.end as usize] {
            let Some(found) = self.numbers_of(w, a, &outcome) else {
                break;
            };
            let slot = env.slots.of(a.defs[0])?;
            outcome.numbers.insert(slot, found);
            outcome.end += 1;
        }
        let live = &program.live[outcome.end as usize];
        let left = |s: u32| matches!(w.held(s).map(|h| &h.val), Some(Val::Sym(s)) if s.term == of);
        let sums = live.iter().filter(|s| !outcome.numbers.contains_key(s));
        (outcome.end > w.pc && !sums.into_iter().any(left)).then_some(outcome)
    }

    /// What an op gives, for each count.
    fn numbers_of(&self, w: &Warp, a: &Act<'_>, so_far: &Outcome) -> Option<Vec<u64>> {
        let (ty, x, y) = match a.op {
            Op::Mov(o) => (o.ty, o.src, Operand::Imm(0)),
            Op::Add(o) => (o.ty, o.a, o.b),
            Op::Rem(o) => (o.ty, o.a, o.b),
            Op::Div(o) => (o.ty, o.a, o.b),
            Op::And(o) => (o.ty, o.a, o.b),
            Op::Xor(o) => (o.ty, o.a, o.b),
            _ => return None,
        };
        if ty != Type::U32 || !a.pure || a.defs.len() != 1 {
            return None;
        }
        let (x, y) = (
            self.for_each_count(w, x, so_far)?,
            self.for_each_count(w, y, so_far)?,
        );
        let pairs = x.into_iter().zip(y);
        pairs
            .map(|(x, y)| {
                let (x, y) = (x as u32, y as u32);
                let z = match a.op {
                    Op::Add(_) => x.wrapping_add(y),
                    Op::Rem(_) => x.checked_rem(y)?,
                    Op::Div(_) => x.checked_div(y)?,
                    Op::And(_) => x & y,
                    Op::Xor(_) => x ^ y,
                    _ => x,
                };
                Some(u64::from(z))
            })
            .collect()
    }

    /// What an operand is, for each count.
    fn for_each_count(&self, w: &Warp, o: Operand, so_far: &Outcome) -> Option<Vec<u64>> {
        let period = self.env.period;
        let same = |x: u64| vec![x; period as usize];
        let r = match o {
            Operand::Imm(x) => return Some(same(x)),
            Operand::Reg(r) => r,
        };
        let slot = self.env.slots.of(r)?;
        if let Some(known) = so_far.numbers.get(&slot) {
            return Some(known.clone());
        }
        match w.held(slot)?.get(super::lanes::ALL) {
            Val::Uni(x) => Some(same(x)),
            Val::Sym(s) if self.env.sums[r.index()] => {
                let lo = self.env.terms.range_of(&self.st.decided, s.term).lo;
                let left = |more: i64| {
                    let sum = s.off + lo + i128::from(more);
                    sum.rem_euclid(i128::from(period)) as u64
                };
                Some((0..period).map(left).collect())
            }
            _ => None,
        }
    }
}
