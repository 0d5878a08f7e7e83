//! Sums, products, quotients and remainders in normal form.

use super::decide::Decisions;
use super::range::{Range, gcd, type_range};
use super::term::{Arg, Node, Sym, TermId, Terms};
use std::collections::BTreeMap;
use warpline_ir::Type;

/// A linear combination and a constant.
#[derive(Clone, Default, Debug)]
pub(super) struct Linear {
    terms: BTreeMap<TermId, i128>,
    off: i128,
}

impl Linear {
    /// Adds `k` times a term.
    fn add(&mut self, t: TermId, k: i128) {
        let n = self.terms.entry(t).or_insert(0);
        *n += k;
        if *n == 0 {
            self.terms.remove(&t);
        }
    }

    /// Adds `k` times another combination.
    fn join(&mut self, other: &Linear, k: i128) {
        self.off += other.off * k;
        for (&t, &n) in &other.terms {
            self.add(t, n * k);
        }
    }

    /// Does it contain every coefficient of another combination, times `k`?
    fn has(&self, other: &Linear, k: i128) -> bool {
        let found = |(t, n): (&TermId, &i128)| self.terms.get(t) == Some(&(n * k));
        !other.terms.is_empty() && other.terms.iter().all(found)
    }
}

/// How an integer fits into a type.
pub(crate) enum Fit {
    /// It is an integer of the type, perhaps after a known number of wraps.
    Exactly(Arg),
    /// It may be below the least integer of the type.
    MayBeBelow,
    /// It may be above the greatest integer of the type.
    MayBeAbove,
}

/// The largest coefficient of the normal form.
const MAX_COEFFICIENT: i128 = 1 << 64;

impl Terms {
    fn linear(&self, a: Arg) -> Option<Linear> {
        let mut sum = Linear::default();
        match a {
            Arg::Num(x) => sum.off = x,
            Arg::Sym(s) => {
                sum.off = s.off;
                match self.node(s.term) {
                    Node::Sum(list) => list.iter().for_each(|&(t, k)| sum.add(t, k)),
                    _ => sum.add(s.term, 1),
                }
            }
            Arg::Pred { .. } => return None,
        }
        Some(sum)
    }

    fn term_of_sum(&self, mut sum: Linear) -> Option<Arg> {
        self.rejoin(&mut sum);
        let fits = |x: &i128| x.abs() <= MAX_COEFFICIENT;
        if !sum.terms.values().all(fits) || !fits(&sum.off) {
            return None;
        }
        let off = sum.off;
        let mut list = sum.terms.into_iter();
        Some(match (list.len(), list.next()) {
            (0, _) | (_, None) => Arg::Num(off),
            (1, Some((term, 1))) => Arg::Sym(Sym { term, off }),
            (_, Some(first)) => {
                let list: Vec<_> = [first].into_iter().chain(list).collect();
                let term = self.add(Node::Sum(list.into()));
                Arg::Sym(Sym { term, off })
            }
        })
    }

    /// Rewrites `x - k * (x / k)` to the remainder, and `k * (x / k) + x % k` to `x`.
    fn rejoin(&self, sum: &mut Linear) {
        let parts: Vec<(TermId, i128)> = sum.terms.iter().map(|(&t, &n)| (t, n)).collect();
        for (t, n) in parts {
            let Node::Div(s, k) = self.node(t) else {
                continue;
            };
            let Some(inner) = self.linear(Arg::Sym(s)) else {
                continue;
            };
            let rest = self.find(&Node::Rem(s, k));
            if n % k != 0 {
                continue;
            }
            let times = -n / k;
            if let Some(rest) = rest
                && sum.terms.get(&rest) == Some(&-times)
            {
                sum.add(t, -n);
                sum.add(rest, times);
                sum.join(&inner, -times);
            } else if sum.has(&inner, times) {
                sum.add(t, -n);
                sum.join(&inner, -times);
                let rest = self.add(Node::Rem(s, k));
                sum.add(rest, times);
            }
        }
    }

    /// Returns `a + k * b`; `None` if the normal form cannot represent it.
    pub(crate) fn sum(&self, a: Arg, b: Arg, k: i128) -> Option<Arg> {
        match (a, b) {
            (Arg::Num(x), Arg::Num(y)) => return x.checked_add(y.checked_mul(k)?).map(Arg::Num),
            (Arg::Sym(s), Arg::Num(y)) => {
                let off = s.off.checked_add(y.checked_mul(k)?)?;
                return (off.abs() <= MAX_COEFFICIENT).then_some(Arg::Sym(Sym { off, ..s }));
            }
            (Arg::Sym(x), Arg::Sym(y)) if x.term == y.term && k == -1 => {
                return Some(Arg::Num(x.off - y.off));
            }
            _ => {}
        }
        let mut sum = self.linear(a)?;
        sum.join(&self.linear(b)?, k);
        self.term_of_sum(sum)
    }

    /// Returns `a * b`.
    pub(crate) fn product(&self, a: Arg, b: Arg) -> Option<Arg> {
        let (a, b) = match (a, b) {
            (Arg::Num(x), b) | (b, Arg::Num(x)) => {
                return match x.abs() <= MAX_COEFFICIENT {
                    true => self.sum(Arg::Num(0), b, x),
                    false => None,
                };
            }
            (a, b) => (self.linear(a)?, self.linear(b)?),
        };
        if a.terms.len() * b.terms.len() > 16 {
            return None;
        }
        let mut sum = Linear {
            off: a.off.checked_mul(b.off)?,
            ..Linear::default()
        };
        for (&t, &n) in &a.terms {
            sum.add(t, n.checked_mul(b.off)?);
            for (&u, &m) in &b.terms {
                let mut list: Vec<TermId> = Vec::new();
                for x in [t, u] {
                    match self.node(x) {
                        Node::Product(parts) => list.extend(parts.iter()),
                        _ => list.push(x),
                    }
                }
                list.sort_unstable();
                let product = self.add(Node::Product(list.into()));
                sum.add(product, n.checked_mul(m)?);
            }
        }
        for (&u, &m) in &b.terms {
            sum.add(u, m.checked_mul(a.off)?);
        }
        self.term_of_sum(sum)
    }

    /// Returns `a / k`, rounded down, for a positive `k`.
    pub(crate) fn quotient(&self, d: &Decisions, a: Arg, k: i128) -> Option<Arg> {
        if k == 1 {
            return Some(a);
        }
        let (whole, rest) = self.split(a, k)?;
        let rest = match self.term_of_sum(rest)? {
            Arg::Num(x) => Arg::Num(x.div_euclid(k)),
            rest => {
                let range = self.range(d, rest);
                match range.lo.div_euclid(k) == range.hi.div_euclid(k) {
                    true => Arg::Num(range.lo.div_euclid(k)),
                    false => self.quotient_of_rest(rest, k)?,
                }
            }
        };
        self.sum(self.term_of_sum(whole)?, rest, 1)
    }

    /// Returns `a % k`, never negative, for a positive `k`.
    pub(crate) fn remainder(&self, d: &Decisions, a: Arg, k: i128) -> Option<Arg> {
        let (_, rest) = self.split(a, k)?;
        let rest = match self.term_of_sum(rest)? {
            Arg::Num(x) => return Some(Arg::Num(x.rem_euclid(k))),
            rest => rest,
        };
        let range = self.range(d, rest);
        if range.lo.div_euclid(k) == range.hi.div_euclid(k) {
            let times = range.lo.div_euclid(k);
            return self.sum(rest, Arg::Num(times * k), -1);
        }
        let Arg::Sym(s) = rest else { return None };
        let term = self.add(Node::Rem(s, k));
        Some(Arg::Sym(Sym { term, off: 0 }))
    }

    /// Splits an integer into `k * whole + rest`, where all coefficients of the rest are less than
    /// `k`.
    fn split(&self, a: Arg, k: i128) -> Option<(Linear, Linear)> {
        let sum = self.linear(a)?;
        let (mut whole, mut rest) = (Linear::default(), Linear::default());
        for (&t, &n) in &sum.terms {
            whole.add(t, n.div_euclid(k));
            rest.add(t, n.rem_euclid(k));
        }
        whole.terms.retain(|_, n| *n != 0);
        rest.terms.retain(|_, n| *n != 0);
        whole.off = sum.off.div_euclid(k);
        rest.off = sum.off.rem_euclid(k);
        Some((whole, rest))
    }

    fn quotient_of_rest(&self, a: Arg, k: i128) -> Option<Arg> {
        let Arg::Sym(s) = a else { return None };
        // (x / j) / k is x / (j * k).
        let (s, k) = match self.node(s.term) {
            Node::Div(inner, j) => (
                Sym {
                    off: inner.off + s.off.checked_mul(j)?,
                    ..inner
                },
                j.checked_mul(k)?,
            ),
            _ => (s, k),
        };
        let term = self.add(Node::Div(s, k));
        Some(Arg::Sym(Sym { term, off: 0 }))
    }

    /// Returns an operand with its single-valued terms replaced by their values. `equal` maps each
    /// term to an equal one.
    pub(crate) fn with_known_values(
        &self,
        d: &Decisions,
        a: Arg,
        equal: &dyn Fn(TermId) -> TermId,
    ) -> Arg {
        self.replaced(a, &|t| self.range_of(d, equal(t)).single().ok_or(t))
    }

    /// Returns an operand with its terms replaced: single-valued terms by their values, all others
    /// by the results of `equal`. A sum that `equal` maps is replaced as a whole.
    pub(crate) fn substituted(
        &self,
        d: &Decisions,
        a: Arg,
        equal: &dyn Fn(TermId) -> TermId,
    ) -> Arg {
        if let Some((whole, sign, off)) = self.signed_sum(a)
            && let other = equal(whole)
            && other != whole
        {
            return match self.range_of(d, other).single() {
                Some(x) => Arg::Num(off + sign * x),
                None => {
                    let replacement = Arg::Sym(Sym {
                        term: other,
                        off: 0,
                    });
                    self.sum(Arg::Num(off), replacement, sign).unwrap_or(a)
                }
            };
        }
        self.replaced(a, &|t| {
            let other = equal(t);
            self.range_of(d, other).single().ok_or(other)
        })
    }

    /// Splits an operand into a sum of several terms or a multiple of one, the sign of the sum, and
    /// a constant. The first coefficient of the sum is positive.
    fn signed_sum(&self, a: Arg) -> Option<(TermId, i128, i128)> {
        let parts = self.linear(a)?;
        let (_, &first) = parts.terms.iter().next()?;
        if parts.terms.len() == 1 && first.abs() == 1 {
            return None;
        }
        let sign = first.signum();
        let mut sum = Linear::default();
        parts.terms.iter().for_each(|(&t, &k)| sum.add(t, k * sign));
        match self.term_of_sum(sum)? {
            Arg::Sym(Sym { term, off: 0 }) => Some((term, sign, parts.off)),
            _ => None,
        }
    }

    /// Returns an operand with its terms replaced by numbers or other terms.
    fn replaced(&self, a: Arg, by: &dyn Fn(TermId) -> Result<i128, TermId>) -> Arg {
        let Some(parts) = self.linear(a) else {
            return a;
        };
        let mut sum = Linear {
            off: parts.off,
            ..Linear::default()
        };
        for (&t, &k) in &parts.terms {
            match by(t) {
                Ok(x) => sum.off += x * k,
                Err(t) => match self.node(t) {
                    Node::Sum(list) => list.iter().for_each(|&(t, n)| sum.add(t, n * k)),
                    _ => sum.add(t, k),
                },
            }
        }
        self.term_of_sum(sum).unwrap_or(a)
    }

    /// Returns the sum with its coefficients divided by their greatest common divisor, if the table
    /// has it.
    pub(super) fn primitive(&self, list: &[(TermId, i128)]) -> Option<(TermId, i128)> {
        let k = list.iter().fold(0, |k, e| gcd(k, e.1));
        if k <= 1 {
            return None;
        }
        let least: Vec<_> = list.iter().map(|&(t, n)| (t, n / k)).collect();
        match least[..] {
            [(t, 1)] => Some((t, k)),
            _ => Some((self.add(Node::Sum(least.into())), k)),
        }
    }

    /// Returns the range of a sum that contains quotients of its own terms, such as `n - n / 2`. It
    /// is tighter than the sum of the ranges.
    pub(super) fn range_by_quotients(&self, d: &Decisions, list: &[(TermId, i128)]) -> Range {
        let mut range = Range::ANY;
        for &(t, c) in list {
            let Node::Div(s, k) = self.node(t) else {
                continue;
            };
            let Some(inner) = self.linear(Arg::Sym(s)) else {
                continue;
            };
            // k times the sum, with k * (s / k) replaced by s or by s - (k - 1), which bound it.
            let bounds = [0, 1 - k].map(|less| {
                let mut sum = Linear::default();
                let rest = list.iter().filter(|e| e.0 != t);
                rest.for_each(|&(t, n)| sum.add(t, n * k));
                sum.join(&inner, c);
                sum.off += c * less;
                sum.terms
                    .iter()
                    .fold(Range::exactly(sum.off), |r, (&t, &n)| {
                        r.add(self.range_of(d, t).times(n))
                    })
            });
            let (lo, hi) = match c > 0 {
                true => (bounds[1].lo, bounds[0].hi),
                false => (bounds[0].lo, bounds[1].hi),
            };
            let up = |x: i128| -((-x).div_euclid(k));
            range = range.and(Range::new(up(lo), hi.div_euclid(k)));
        }
        range
    }

    /// Returns how an integer fits into a type.
    pub(crate) fn fit(&self, d: &Decisions, a: Arg, ty: Type) -> Fit {
        let (range, all) = (self.range(d, a), type_range(ty));
        if range.is_within(&all) {
            return Fit::Exactly(a);
        }
        let size = all.hi - all.lo + 1;
        let window = |x: i128| (x - all.lo).div_euclid(size);
        if window(range.lo) == window(range.hi)
            && let Some(moved) = self.sum(a, Arg::Num(window(range.lo) * size), -1)
        {
            return Fit::Exactly(moved);
        }
        match range.lo < all.lo {
            true => Fit::MayBeBelow,
            false => Fit::MayBeAbove,
        }
    }

    /// Returns the integer of a type with the same low bits.
    pub(crate) fn wrap(&self, d: &Decisions, a: Arg, ty: Type) -> Arg {
        if let Fit::Exactly(a) = self.fit(d, a, ty) {
            return a;
        }
        match a {
            Arg::Sym(s) => {
                let term = self.add(Node::Wrap(s, ty));
                Arg::Sym(Sym { term, off: 0 })
            }
            other => other,
        }
    }

    /// Adds `k` times the terms of an operand to a sum; returns `k` times its constant.
    pub(crate) fn add_multiple(&self, a: Arg, k: i128, terms: &mut BTreeMap<TermId, i128>) -> i128 {
        let Some(sum) = self.linear(a) else { return 0 };
        let mut all = Linear {
            terms: std::mem::take(terms),
            off: 0,
        };
        all.join(&sum, k);
        *terms = all.terms;
        all.off
    }

    /// Returns the difference `a - b` with its canonical sign, and whether that negates it.
    pub(super) fn difference(&self, a: Arg, b: Arg) -> Option<(Arg, bool)> {
        let mut sum = self.linear(a)?;
        sum.join(&self.linear(b)?, -1);
        let negated = sum.terms.values().next().is_some_and(|&n| n < 0);
        if negated {
            let mut negation = Linear::default();
            negation.join(&sum, -1);
            sum = negation;
        }
        Some((self.term_of_sum(sum)?, negated))
    }

    /// Returns the bounds that a range of a sum implies for each of its terms.
    pub(super) fn bounds_of_terms(
        &self,
        d: &Decisions,
        t: TermId,
        range: Range,
    ) -> Vec<(TermId, Range)> {
        let Node::Sum(list) = self.node(t) else {
            return Vec::new();
        };
        let ranges: Vec<Range> = list.iter().map(|&(t, _)| self.range_of(d, t)).collect();
        let ends = |i: usize| {
            let k = list[i].1;
            let (a, b) = (
                ranges[i].lo.saturating_mul(k),
                ranges[i].hi.saturating_mul(k),
            );
            (a.min(b), a.max(b))
        };
        let mut parts = Vec::new();
        for i in 0..list.len() {
            let others = (0..list.len()).filter(|&j| j != i).map(ends);
            let (lo, hi) = others.fold((0i128, 0i128), |(lo, hi), (a, b)| {
                (lo.saturating_add(a), hi.saturating_add(b))
            });
            // range.lo - hi <= k * part <= range.hi - lo
            let (low, high) = (range.lo.saturating_sub(hi), range.hi.saturating_sub(lo));
            let k = list[i].1;
            let up = |x: i128, k: i128| -((-x).div_euclid(k));
            let bound = match k > 0 {
                true => Range::new(up(low, k), high.div_euclid(k)),
                false => Range::new(up(-high, -k), (-low).div_euclid(-k)),
            };
            parts.push((list[i].0, bound));
        }
        parts
    }
}
