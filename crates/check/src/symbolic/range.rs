//! The possible values of a term.

use super::decide::Decisions;
use super::term::{Arg, Node, TermId, Terms};
use warpline_ir::Type;

/// The integers of an interval that have one residue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Range {
    pub(crate) lo: i128,
    pub(crate) hi: i128,
    /// All integers are `residue` modulo this; 1 is no restriction.
    pub(crate) modulus: i128,
    pub(crate) residue: i128,
}

/// A bound beyond every type; sums of a few such bounds still fit into `i128`.
const UNBOUNDED: i128 = 1 << 120;

/// The most remaining iterations of a loop by which states differ.
const MAX_DISTINCT_REST: i128 = 64;
/// The most remaining iterations of a loop by which joined states differ.
const MAX_DISTINCT_REST_JOINED: i128 = 24;

impl Range {
    /// The range without restriction.
    pub(crate) const ANY: Range = Range::new(-UNBOUNDED, UNBOUNDED);

    pub(crate) const fn new(lo: i128, hi: i128) -> Self {
        Self {
            lo,
            hi,
            modulus: 1,
            residue: 0,
        }
    }

    pub(crate) const fn exactly(x: i128) -> Self {
        Self::new(x, x)
    }

    /// Returns the multiples of a number in the range.
    pub(crate) fn multiples_of(self, modulus: i128) -> Self {
        Self {
            modulus: modulus.max(1),
            residue: 0,
            ..self
        }
        .tightened()
    }

    /// Returns the only integer, if there is only one.
    pub(crate) fn single(&self) -> Option<i128> {
        (self.lo == self.hi).then_some(self.lo)
    }

    pub(crate) fn has(&self, x: i128) -> bool {
        self.lo <= x && x <= self.hi && (x - self.residue).rem_euclid(self.modulus) == 0
    }

    /// Is the interval inside another?
    pub(crate) fn is_within(&self, other: &Range) -> bool {
        other.lo <= self.lo && self.hi <= other.hi
    }

    /// Returns the range with its bounds moved to integers that have the residue.
    fn tightened(self) -> Self {
        if self.modulus <= 1 {
            return self;
        }
        let up = (self.residue - self.lo).rem_euclid(self.modulus);
        let down = (self.hi - self.residue).rem_euclid(self.modulus);
        Self {
            lo: self.lo + up,
            hi: self.hi - down,
            ..self
        }
    }

    /// Returns the intersection. An empty range is not normalized, because no query uses it.
    pub(crate) fn and(self, other: Range) -> Self {
        let (modulus, residue) = match (self.modulus, other.modulus) {
            (_, 1) => (self.modulus, self.residue),
            (1, _) => (other.modulus, other.residue),
            (a, b) if a % b == 0 => (a, self.residue),
            (a, b) if b % a == 0 => (b, other.residue),
            // Keeping one of the two residues is sound.
            (a, _) => (a, self.residue),
        };
        Self {
            lo: self.lo.max(other.lo),
            hi: self.hi.min(other.hi),
            modulus,
            residue,
        }
        .tightened()
    }

    pub(crate) fn plus(self, x: i128) -> Self {
        let residue = match self.modulus {
            1 => 0,
            modulus => (self.residue + x).rem_euclid(modulus),
        };
        Self {
            lo: clamp(self.lo.saturating_add(x)),
            hi: clamp(self.hi.saturating_add(x)),
            modulus: self.modulus,
            residue,
        }
    }

    pub(super) fn add(self, other: Range) -> Self {
        let modulus = gcd(self.modulus_or_zero(), other.modulus_or_zero());
        Self {
            lo: clamp(self.lo.saturating_add(other.lo)),
            hi: clamp(self.hi.saturating_add(other.hi)),
            ..residues(modulus, self.residue_or_value() + other.residue_or_value())
        }
    }

    pub(super) fn times(self, k: i128) -> Self {
        if k == 1 {
            return self;
        }
        let ends = [self.lo.saturating_mul(k), self.hi.saturating_mul(k)];
        let modulus = self.modulus_or_zero().saturating_mul(k.abs());
        let modulus = if modulus == i128::MAX { 1 } else { modulus };
        Self {
            lo: clamp(ends[0].min(ends[1])),
            hi: clamp(ends[0].max(ends[1])),
            ..residues(modulus, self.residue_or_value().saturating_mul(k))
        }
    }

    fn product(self, other: Range) -> Self {
        if let Some(k) = self.single() {
            return other.times(k);
        }
        if let Some(k) = other.single() {
            return self.times(k);
        }
        let all = [self.lo, self.hi].map(|a| [other.lo, other.hi].map(|b| a.saturating_mul(b)));
        let all = [all[0][0], all[0][1], all[1][0], all[1][1]];
        let lo = clamp(all.iter().copied().min().unwrap_or(-UNBOUNDED));
        let hi = clamp(all.iter().copied().max().unwrap_or(UNBOUNDED));
        // The product of a multiple of a and a multiple of b is a multiple of a * b.
        let multiple = |r: &Range| match r.residue {
            0 => r.modulus,
            residue => gcd(r.modulus, residue),
        };
        let modulus = multiple(&self).saturating_mul(multiple(&other));
        let modulus = if modulus > 1 << 62 { 1 } else { modulus };
        Self {
            lo,
            hi,
            modulus,
            residue: 0,
        }
    }

    fn divided(self, k: i128) -> Self {
        let exact = self.modulus % k == 0 && self.residue % k == 0;
        let (modulus, residue) = match exact {
            true => (self.modulus / k, self.residue / k),
            false => (1, 0),
        };
        let modulus = modulus.max(1);
        Self {
            lo: self.lo.div_euclid(k),
            hi: self.hi.div_euclid(k),
            modulus,
            residue: residue.rem_euclid(modulus),
        }
    }

    fn remainder(self, k: i128) -> Self {
        if self.lo.div_euclid(k) == self.hi.div_euclid(k) {
            return self.plus(-self.lo.div_euclid(k) * k);
        }
        let all = Range::new(0, k - 1);
        match self.modulus {
            1 => all,
            m if m % k == 0 => Range::exactly(self.residue.rem_euclid(k)),
            m if k % m == 0 => Range {
                modulus: m,
                residue: self.residue,
                ..all
            }
            .tightened(),
            _ => all,
        }
    }

    /// Returns the modulus; 0 for a single number, which has one residue for every modulus.
    fn modulus_or_zero(&self) -> i128 {
        match self.single() {
            Some(_) => 0,
            None => self.modulus,
        }
    }

    fn residue_or_value(&self) -> i128 {
        self.single().unwrap_or(self.residue)
    }
}

fn residues(modulus: i128, residue: i128) -> Range {
    if modulus <= 1 {
        return Range::exactly(0);
    }
    Range {
        lo: 0,
        hi: 0,
        modulus,
        residue: residue.rem_euclid(modulus),
    }
}

fn clamp(x: i128) -> i128 {
    x.clamp(-UNBOUNDED, UNBOUNDED)
}

pub(super) fn gcd(a: i128, b: i128) -> i128 {
    let (mut x, mut y) = (a.abs(), b.abs());
    if x == 1 || y == 1 {
        return 1;
    }
    while y != 0 {
        (x, y) = (y, x % y);
    }
    x
}

/// Returns the integers of a type; for other types, the integers of their bits.
pub(crate) fn type_range(ty: Type) -> Range {
    let bits = match ty {
        Type::Pred => 1,
        ty => 8 * ty.bytes() as u32,
    };
    match ty.is_signed() {
        true => Range::new(-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        false => Range::new(0, (1 << bits) - 1),
    }
}

impl Terms {
    /// Returns the possible values of an operand.
    pub(crate) fn range(&self, d: &Decisions, a: Arg) -> Range {
        match a {
            Arg::Num(x) => Range::exactly(x),
            Arg::Pred { .. } => Range::new(0, 1),
            Arg::Sym(s) => self.range_of(d, s.term).plus(s.off),
        }
    }

    /// Returns the possible values of a term.
    pub(crate) fn range_of(&self, d: &Decisions, t: TermId) -> Range {
        if self.is_leaf(t) {
            let base = self.base_range(t);
            return d.ranges.get(&t).map_or(base, |decided| base.and(*decided));
        }
        let key = (
            d.ranges.version(),
            d.truths.version(),
            self.states_are_joined.get(),
        );
        let index = t as usize;
        if let Some(Some((of, range))) = self.computed_ranges.borrow().get(index)
            && *of == key
        {
            return *range;
        }
        let range = self.compute_range(d, t);
        let mut computed = self.computed_ranges.borrow_mut();
        if computed.len() <= index {
            computed.resize(index + 1, None);
        }
        computed[index] = Some((key, range));
        range
    }

    /// Computes the range of a term with subterms, which share subterms of their own.
    fn compute_range(&self, d: &Decisions, t: TermId) -> Range {
        let structure = match self.node(t) {
            Node::Sum(list) => {
                let parts = list.iter().fold(Range::exactly(0), |sum, &(t, k)| {
                    sum.add(self.range_of(d, t).times(k))
                });
                let whole = parts.and(self.range_by_quotients(d, &list));
                match self.primitive(&list) {
                    Some((t, k)) => whole.and(self.range_of(d, t).times(k)),
                    None => whole,
                }
            }
            Node::Product(list) => list.iter().fold(Range::exactly(1), |product, &t| {
                product.product(self.range_of(d, t))
            }),
            Node::Div(s, k) => self.range(d, Arg::Sym(s)).divided(k),
            Node::Rem(s, k) => self.range(d, Arg::Sym(s)).remainder(k),
            Node::Wrap(s, ty) => {
                let (all, of) = (type_range(ty), self.range(d, Arg::Sym(s)));
                match of.is_within(&all) {
                    true => of,
                    false => of.plus(-all.lo).remainder(all.hi - all.lo + 1).plus(all.lo),
                }
            }
            Node::Quotient(a, b) => {
                let (a, b) = (self.range(d, a), self.range(d, b));
                match a.lo >= 0 && b.lo > 0 {
                    true => Range::new(a.lo / b.hi, a.hi / b.lo),
                    false => Range::ANY,
                }
            }
            Node::Remainder(a, b) => {
                let (a, b) = (self.range(d, a), self.range(d, b));
                match a.lo >= 0 && b.lo > 0 {
                    true => Range::new(0, a.hi.min(b.hi - 1)),
                    false => Range::ANY,
                }
            }
            Node::Min(a, b) => {
                let (a, b) = (self.range(d, a), self.range(d, b));
                Range::new(a.lo.min(b.lo), a.hi.min(b.hi))
            }
            Node::Max(a, b) => {
                let (a, b) = (self.range(d, a), self.range(d, b));
                Range::new(a.lo.max(b.lo), a.hi.max(b.hi))
            }
            Node::Iterations(from, to, _) => match self.less(d, from, to) {
                Some(true) => Range::new(1, i128::from(u32::MAX)),
                Some(false) => Range::exactly(0),
                None => Range::ANY,
            },
            Node::Loop { count, .. } => {
                // States do not differ by their distance to a far end, so the range exceeds the
                // greatest count.
                let range = self.range_of(d, count);
                let left = range.hi.saturating_sub(range.lo);
                match left
                    > if self.states_are_joined.get() {
                        MAX_DISTINCT_REST_JOINED
                    } else {
                        MAX_DISTINCT_REST
                    } {
                    true => Range {
                        hi: UNBOUNDED,
                        ..range
                    },
                    false => range,
                }
            }
            Node::Counter {
                round,
                from,
                step,
                to,
                ..
            } => {
                let (from, step) = (self.range(d, from), self.range(d, step));
                let now = from.add(step.times(i128::from(round)));
                // The counter of an iteration is below the end.
                let last = self.range(d, to).hi - 1;
                now.and(Range::new(-UNBOUNDED, last.max(now.lo)))
            }
            _ => Range::ANY,
        };
        let mut range = structure.and(self.base_range(t));
        if let Some(decided) = d.ranges.get(&t) {
            range = range.and(*decided);
        }
        range
    }

    /// Returns the residue of a term, if it is known.
    pub(crate) fn residue(&self, d: &Decisions, t: TermId, modulus: i128) -> Option<i128> {
        let range = self.range_of(d, t);
        if let Some(x) = range.single() {
            return Some(x.rem_euclid(modulus));
        }
        if range.modulus % modulus == 0 {
            return Some(range.residue.rem_euclid(modulus));
        }
        match self.node(t) {
            Node::Sum(list) => list.iter().try_fold(0i128, |sum, &(t, k)| {
                let r = self.residue(d, t, modulus)?;
                Some((sum + r * k.rem_euclid(modulus)).rem_euclid(modulus))
            }),
            Node::Product(list) => list.iter().try_fold(1i128, |product, &t| {
                let r = self.residue(d, t, modulus)?;
                Some((product * r).rem_euclid(modulus))
            }),
            Node::Rem(s, k) if k % modulus == 0 => {
                let r = self.residue(d, s.term, modulus)?;
                Some((r + s.off).rem_euclid(modulus))
            }
            Node::Loop { count, .. } => self.residue(d, count, modulus),
            _ => None,
        }
    }

    /// Returns a subterm of `t` whose residue must be decided first.
    pub(crate) fn undecided_residue(
        &self,
        d: &Decisions,
        t: TermId,
        modulus: i128,
    ) -> Option<TermId> {
        if self.residue(d, t, modulus).is_some() {
            return None;
        }
        let mut parts: Vec<TermId> = Vec::new();
        match self.node(t) {
            Node::Sum(list) => parts.extend(list.iter().map(|e| e.0)),
            Node::Product(list) => parts.extend(list.iter()),
            Node::Rem(s, k) if k % modulus == 0 => parts.push(s.term),
            Node::Loop { count, .. } => parts.push(count),
            _ => return Some(t),
        }
        let mut open = parts
            .iter()
            .filter_map(|&t| self.undecided_residue(d, t, modulus));
        open.next()
    }
}
