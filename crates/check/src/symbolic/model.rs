//! Integers for terms: a launch and words of memory that satisfy decisions.
//!
//! This is a search, not a proof: the integers may violate a decision. A run of the kernel with
//! them shows whether it fails.

use super::decide::Question;
use super::range::{Range, type_range};
use super::term::{Arg, Node, TermId, Terms, each_term};
use std::collections::{BTreeMap, BTreeSet};

/// An integer for each term without subterms.
#[derive(Clone, Default, Debug)]
pub(crate) struct Model {
    pub(crate) values: BTreeMap<TermId, i128>,
    /// Whether the integers violate a decision or a range.
    pub(crate) is_violated: bool,
}

/// The most leaves that one search changes.
const MAX_REPAIRS: usize = 48;

/// A constraint on a model.
#[derive(Clone, Copy)]
enum Constraint {
    /// The answer to a question.
    Answer(Question, bool),
    /// The range of a term.
    InRange(TermId, Range),
}

impl Terms {
    /// Searches for a model that satisfies the decisions and ranges. It prefers small integers and
    /// does not change `fixed`.
    pub(crate) fn model(
        &self,
        decisions: &[(Question, bool)],
        ranges: &BTreeMap<TermId, Range>,
        fixed: &Model,
    ) -> Model {
        let decided = decisions.iter().map(|&(q, yes)| Constraint::Answer(q, yes));
        let in_range = ranges
            .iter()
            .map(|(&t, &range)| Constraint::InRange(t, range));
        let constraints: Vec<(Constraint, Vec<TermId>)> = decided
            .chain(in_range)
            .map(|k| (k, self.leaves_of(k)))
            .collect();
        let mut model = fixed.clone();
        for t in constraints.iter().flat_map(|(_, leaves)| leaves) {
            model.values.entry(*t).or_insert(self.smallest(*t));
        }
        for _ in 0..MAX_REPAIRS {
            let broken = |m: &Model| {
                let broken = constraints
                    .iter()
                    .filter(|(k, _)| self.is_satisfied(m, *k) == Some(false));
                broken.count()
            };
            let before = broken(&model);
            let Some((first, leaves)) =
                { constraints.iter() }.find(|(k, _)| self.is_satisfied(&model, *k) == Some(false))
            else {
                break;
            };
            let mut best: Option<(usize, i128, TermId, i128)> = None;
            for &t in leaves.iter().filter(|t| !fixed.values.contains_key(t)) {
                let now = model.values[&t];
                for x in self.repair_candidates(&model, *first, t) {
                    if x == now || !self.base_range(t).has(x) {
                        continue;
                    }
                    let mut next = model.clone();
                    next.values.insert(t, x);
                    if self.is_satisfied(&next, *first) == Some(false) {
                        continue;
                    }
                    let rank = (broken(&next), x.abs(), t, x);
                    if best.is_none_or(|b| rank < b) {
                        best = Some(rank);
                    }
                }
            }
            match best {
                Some((left, _, t, x)) if left < before => {
                    model.values.insert(t, x);
                }
                _ => break,
            }
        }
        model.is_violated =
            { constraints.iter() }.any(|(k, _)| self.is_satisfied(&model, *k) == Some(false));
        model
    }

    /// Returns the smallest value of a leaf.
    fn smallest(&self, t: TermId) -> i128 {
        let base = self.base_range(t);
        let ty = match self.node(t) {
            Node::Global(_, ty) | Node::Copied(_, _, ty) => type_range(ty),
            _ => Range::new(-(1 << 62), 1 << 62),
        };
        let base = base.and(ty);
        match () {
            _ if base.lo > 0 => base.lo,
            _ if base.hi < 0 => base.hi,
            _ => (base.residue).rem_euclid(base.modulus.max(1)).min(base.hi),
        }
    }

    /// Returns integers that may repair a violated constraint.
    fn repair_candidates(&self, m: &Model, constraint: Constraint, t: TermId) -> BTreeSet<i128> {
        let now = m.values[&t];
        let mut list: BTreeSet<i128> = (0..4).collect();
        let base = self.base_range(t);
        list.extend([base.lo, base.hi]);
        for k in 0..40 {
            list.extend([
                now + (1 << k),
                now - (1 << k),
                1 << k,
                (1 << k) - 1,
                (1 << k) + 1,
            ]);
        }
        // Near these integers a linear term crosses a bound.
        let (of, bounds) = match constraint {
            Constraint::InRange(of, range) => (of, [range.lo, range.hi]),
            Constraint::Answer(Question::RunsMoreThan { of, than }, _) => (of, [than, than + 1]),
            Constraint::Answer(Question::HasResidue { term, residue, .. }, _) => {
                (term, [residue, residue + 1])
            }
            Constraint::Answer(Question::Holds(p), _) => match self.node(p) {
                Node::Less(of, k) => (of, [k - 1, k]),
                Node::Equal(of, k) => (of, [k, k + 1]),
                _ => return list,
            },
        };
        let Some(value) = self.value(m, of) else {
            return list;
        };
        for stride in [1, 64, 4096, 1 << 16] {
            let mut next = m.clone();
            next.values.insert(t, now + stride);
            let slope = self.value(&next, of).map_or(0, |x| x - value);
            if slope != 0 {
                for bound in bounds {
                    let scaled = bound.saturating_sub(value).saturating_mul(stride);
                    let by = scaled.div_euclid(slope);
                    list.extend((-1..=1).map(|e| now.saturating_add(by).saturating_add(e)));
                    let up = now
                        .saturating_add(by.saturating_add(stride - 1).div_euclid(stride) * stride);
                    list.insert(up);
                }
            }
        }
        let round_down = |x: i128| x - (x - base.residue).rem_euclid(base.modulus.max(1));
        let more: Vec<i128> = list.iter().map(|&x| round_down(x)).collect();
        list.extend(more.iter().map(|x| x + base.modulus));
        list.extend(more);
        list
    }

    fn is_satisfied(&self, m: &Model, constraint: Constraint) -> Option<bool> {
        match constraint {
            Constraint::InRange(t, range) => self.value(m, t).map(|x| range.has(x)),
            Constraint::Answer(Question::Holds(t), yes) => {
                self.value(m, t).map(|x| (x != 0) == yes)
            }
            Constraint::Answer(Question::RunsMoreThan { of, than }, yes) => {
                self.value(m, of).map(|x| (x > than) == yes)
            }
            Constraint::Answer(
                Question::HasResidue {
                    term,
                    modulus,
                    residue,
                },
                yes,
            ) => {
                let x = self.value(m, term)?;
                Some((x.checked_rem_euclid(modulus)? == residue) == yes)
            }
        }
    }

    /// Returns the leaves that a constraint depends on.
    fn leaves_of(&self, constraint: Constraint) -> Vec<TermId> {
        let of = match constraint {
            Constraint::InRange(t, _) | Constraint::Answer(Question::Holds(t), _) => t,
            Constraint::Answer(Question::RunsMoreThan { of, .. }, _) => of,
            Constraint::Answer(Question::HasResidue { term, .. }, _) => term,
        };
        let mut leaves = BTreeSet::new();
        self.add_leaves(of, &mut leaves);
        leaves.into_iter().collect()
    }

    fn add_leaves(&self, t: TermId, leaves: &mut BTreeSet<TermId>) {
        let node = self.node(t);
        if let Node::Loop { count, .. } = node {
            return self.add_leaves(count, leaves);
        }
        if is_leaf(&node) {
            leaves.insert(t);
            return;
        }
        each_term(&node, &mut |t| self.add_leaves(t, leaves));
    }

    /// Returns the value of an operand in a model; leaves that the model lacks get small values.
    pub(crate) fn evaluate(&self, m: &Model, a: Arg) -> Option<i128> {
        let mut leaves = BTreeSet::new();
        if let Arg::Sym(s) = a {
            self.add_leaves(s.term, &mut leaves);
        }
        let mut m = m.clone();
        for t in leaves {
            m.values.entry(t).or_insert(self.smallest(t));
        }
        self.arg(&m, a)
    }

    /// Returns the value of a term in a model; a predicate is 0 or 1.
    fn value(&self, m: &Model, t: TermId) -> Option<i128> {
        if let Some(&x) = m.values.get(&t) {
            return Some(x);
        }
        let arg = |a: &Arg| self.arg(m, *a);
        let truth = |holds: bool| Some(i128::from(holds));
        match self.node(t) {
            Node::Sum(list) => {
                let mut parts = list.iter();
                parts.try_fold(0i128, |sum, &(t, k)| {
                    sum.checked_add(self.value(m, t)?.checked_mul(k)?)
                })
            }
            Node::Product(list) => {
                let mut parts = list.iter();
                parts.try_fold(1i128, |x, &t| x.checked_mul(self.value(m, t)?))
            }
            Node::Div(s, k) => arg(&Arg::Sym(s))?.checked_div_euclid(k),
            Node::Rem(s, k) => arg(&Arg::Sym(s))?.checked_rem_euclid(k),
            Node::Quotient(a, b) => arg(&a)?.checked_div_euclid(arg(&b)?),
            Node::Remainder(a, b) => arg(&a)?.checked_rem_euclid(arg(&b)?),
            Node::Min(a, b) => Some(arg(&a)?.min(arg(&b)?)),
            Node::Max(a, b) => Some(arg(&a)?.max(arg(&b)?)),
            Node::Wrap(s, ty) => {
                let range = type_range(ty);
                let x = arg(&Arg::Sym(s))?.checked_sub(range.lo)?;
                Some(x.rem_euclid(range.hi - range.lo + 1) + range.lo)
            }
            Node::Less(t, k) => truth(self.value(m, t)? < k),
            Node::Equal(t, k) => truth(self.value(m, t)? == k),
            Node::And(a, b) => truth(arg(&a)? != 0 && arg(&b)? != 0),
            Node::Or(a, b) => truth(arg(&a)? != 0 || arg(&b)? != 0),
            Node::Test(u32::MAX, args) => truth(arg(&args[0])? == arg(&args[1])?),
            Node::Test(n, args) if n == u32::MAX - 1 => truth(arg(&args[0])? < arg(&args[1])?),
            Node::Iterations(from, to, step) => {
                let (from, to, step) = (arg(&from)?, arg(&to)?, arg(&step)?);
                let left = to.checked_sub(from)?.max(0);
                (step > 0).then(|| (left + step - 1) / step)
            }
            Node::Loop { count, .. } => self.value(m, count),
            Node::Counter {
                round, from, step, ..
            } => arg(&from)?.checked_add(arg(&step)?.checked_mul(round.into())?),
            _ => None,
        }
    }

    fn arg(&self, m: &Model, a: Arg) -> Option<i128> {
        match a {
            Arg::Num(x) => Some(x),
            Arg::Sym(s) => self.value(m, s.term)?.checked_add(s.off),
            Arg::Pred { term, not } => {
                let x = self.value(m, term)?;
                Some(i128::from((x != 0) != not))
            }
        }
    }
}

/// Can a term be any integer of its type?
fn is_leaf(node: &Node) -> bool {
    match node {
        Node::Param(_) | Node::Special(_) | Node::Fresh(_) => true,
        Node::Global(..) | Node::Copied(..) | Node::Function(..) => true,
        Node::Test(n, _) => *n < u32::MAX - 1,
        _ => false,
    }
}
