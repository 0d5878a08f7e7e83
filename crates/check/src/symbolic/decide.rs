//! Decisions about terms, and the predicates that they imply.

use super::range::Range;
use super::term::{Arg, Node, Sym, TermId, Terms};
use std::collections::BTreeMap;
use warpline_ir::ops::compare::Cmp;

/// The decisions made so far.
#[derive(Clone, Default, Debug)]
pub(crate) struct Decided {
    pub(crate) ranges: BTreeMap<TermId, Range>,
    pub(crate) truths: BTreeMap<TermId, bool>,
    /// By term: of its residues modulo the first number, those up to the second are ruled out.
    pub(crate) residues: BTreeMap<TermId, (i128, i128)>,
    /// Do the decisions contradict each other? Then no launch leads here.
    pub(crate) impossible: bool,
}

/// The truth of a predicate, or the question to decide first.
pub(crate) type Truth = Result<bool, Question>;

/// A question about the launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Question {
    /// Does a predicate hold?
    Is(TermId),
    /// Has a loop more iterations than this?
    More { of: TermId, than: i128 },
    /// Does a term have this residue?
    Leaves {
        term: TermId,
        modulus: i128,
        residue: i128,
    },
}

/// The depth to which a decision about a term propagates to its subterms.
const DEPTH: u32 = 4;

impl Terms {
    /// Returns the result of a comparison if it is known, else the predicate.
    pub(crate) fn compare(&self, d: &Decided, cmp: Cmp, a: Arg, b: Arg) -> Result<bool, Arg> {
        // a < b is a - b < 0; of a difference and its negation one is the canonical term.
        let (a, b, less, not) = match cmp {
            Cmp::Lt => (a, b, true, false),
            Cmp::Ge => (a, b, true, true),
            Cmp::Gt => (b, a, true, false),
            Cmp::Le => (b, a, true, true),
            Cmp::Eq => (a, b, false, false),
            Cmp::Ne => (a, b, false, true),
        };
        let Some((difference, turned)) = self.difference(a, b) else {
            let term = self.add(Node::Test(u32::MAX - u32::from(less), [a, b].into()));
            return Err(Arg::Pred { term, not });
        };
        let (node, not) = match (difference, less) {
            (Arg::Num(x), true) => return Ok((if turned { -x } else { x } < 0) != not),
            (Arg::Num(x), false) => return Ok((x == 0) != not),
            // t + off < 0, or, negated, 0 < t + off: not t < 1 - off.
            (Arg::Sym(s), true) if turned => (Node::Less(s.term, 1 - s.off), !not),
            (Arg::Sym(s), true) => (Node::Less(s.term, -s.off), not),
            (Arg::Sym(s), false) => (Node::Equal(s.term, -s.off), not),
            (Arg::Pred { .. }, _) => return Err(difference),
        };
        let term = self.add(node);
        let p = Arg::Pred { term, not };
        self.truth(d, p).map_err(|_| p)
    }

    /// Returns whether one operand is less than another, if that is known.
    pub(super) fn less(&self, d: &Decided, a: Arg, b: Arg) -> Option<bool> {
        self.compare(d, Cmp::Lt, a, b).ok()
    }

    /// Returns the truth of a predicate.
    pub(crate) fn truth(&self, d: &Decided, p: Arg) -> Truth {
        let (term, not) = match p {
            Arg::Num(x) => return Ok(x != 0),
            Arg::Pred { term, not } => (term, not),
            Arg::Sym(s) => (s.term, false),
        };
        if let Some(&known) = d.truths.get(&term) {
            return Ok(known != not);
        }
        let known = match self.node(term) {
            node @ (Node::Less(..) | Node::Equal(..)) => self.by_range(d, &node),
            Node::Both(a, b) => match (self.truth(d, a), self.truth(d, b)) {
                (Ok(false), _) | (_, Ok(false)) => Some(false),
                (Ok(true), Ok(true)) => Some(true),
                (Err(q), _) | (_, Err(q)) => return Err(q),
            },
            Node::Either(a, b) => match (self.truth(d, a), self.truth(d, b)) {
                (Ok(true), _) | (_, Ok(true)) => Some(true),
                (Ok(false), Ok(false)) => Some(false),
                (Err(q), _) | (_, Err(q)) => return Err(q),
            },
            _ => None,
        };
        known.map(|k| k != not).ok_or(Question::Is(term))
    }

    /// Returns the result of a comparison that the range of its term implies.
    fn by_range(&self, d: &Decided, comparison: &Node) -> Option<bool> {
        match *comparison {
            Node::Less(t, k) => {
                let range = self.range_of(d, t);
                match () {
                    _ if range.hi < k => Some(true),
                    _ if range.lo >= k => Some(false),
                    _ => None,
                }
            }
            Node::Equal(t, k) => {
                let range = self.range_of(d, t);
                match () {
                    _ if !range.has(k) => Some(false),
                    _ if range.single() == Some(k) => Some(true),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Returns the answer to a question, if it is decided.
    pub(crate) fn answer(&self, d: &Decided, q: Question) -> Option<bool> {
        match q {
            Question::Is(term) => self.truth(d, Arg::Pred { term, not: false }).ok(),
            Question::More { of, than } => {
                let range = self.range_of(d, of);
                match () {
                    _ if range.lo > than => Some(true),
                    _ if range.hi <= than => Some(false),
                    _ => None,
                }
            }
            Question::Leaves {
                term,
                modulus,
                residue,
            } => {
                if let Some(r) = self.residue(d, term, modulus) {
                    return Some(r == residue);
                }
                let out = d.residues.get(&term).filter(|r| r.0 == modulus);
                out.filter(|r| residue <= r.1).map(|_| false)
            }
        }
    }

    /// Returns the next question that narrows the residue of a term.
    pub(crate) fn next_residue(&self, d: &Decided, term: TermId, modulus: i128) -> Question {
        let out = d.residues.get(&term).filter(|r| r.0 == modulus);
        Question::Leaves {
            term,
            modulus,
            residue: out.map_or(0, |r| r.1 + 1),
        }
    }

    /// Decides a question.
    pub(crate) fn decide(&self, d: &mut Decided, q: Question, yes: bool) {
        self.take(d, q, yes);
        d.impossible |= !self.loose.get() && self.contradicts(d);
    }

    /// Do the ranges show that decisions about the launch contradict each other? Decisions about
    /// iterations do not count, because a state represents others with more iterations.
    fn contradicts(&self, d: &Decided) -> bool {
        let empty = |t: &TermId| {
            let range = self.range_of(d, *t);
            range.lo > range.hi
        };
        let fixed = |t: &&TermId| self.is_fixed(**t);
        let wrong =
            |(&p, &known): (&TermId, &bool)| self.by_range(d, &self.node(p)) == Some(!known);
        let truths = d.truths.iter().filter(|(t, _)| self.is_fixed(**t));
        d.ranges.keys().filter(fixed).any(empty) || { truths }.any(wrong)
    }

    fn take(&self, d: &mut Decided, q: Question, yes: bool) {
        match q {
            Question::More { of, than } => {
                let range = match yes {
                    true => Range::new(than + 1, Range::ANY.hi),
                    false => Range::new(Range::ANY.lo, than),
                };
                self.narrow(d, of, range, DEPTH);
                if yes && self.rests.get() {
                    self.whole_loop(d, of, than + 1);
                }
            }
            Question::Leaves {
                term,
                modulus,
                residue,
            } => {
                // All residues but the last are excluded, so the last one holds.
                let residue = match yes {
                    true => residue,
                    false if residue + 2 == modulus => residue + 1,
                    false => {
                        d.residues.insert(term, (modulus, residue));
                        return;
                    }
                };
                d.residues.remove(&term);
                let range = Range {
                    modulus,
                    residue,
                    ..Range::ANY
                };
                self.narrow(d, term, range, 0);
            }
            Question::Is(term) => match self.node(term) {
                Node::Less(t, k) => {
                    let range = match yes {
                        true => Range::new(Range::ANY.lo, k - 1),
                        false => Range::new(k, Range::ANY.hi),
                    };
                    self.narrow(d, t, range, DEPTH);
                }
                Node::Equal(t, k) if yes => self.narrow(d, t, Range::one(k), DEPTH),
                Node::Equal(t, k) => {
                    let range = self.range_of(d, t);
                    match k {
                        _ if k == range.lo => {
                            self.narrow(d, t, Range::new(k + 1, Range::ANY.hi), DEPTH)
                        }
                        _ if k == range.hi => {
                            self.narrow(d, t, Range::new(Range::ANY.lo, k - 1), DEPTH)
                        }
                        _ => {
                            d.truths.insert(term, false);
                        }
                    }
                }
                _ => {
                    d.truths.insert(term, yes);
                }
            },
        }
    }

    /// Is a predicate a comparison with a number close to the limit of its type?
    pub(crate) fn is_bound(&self, t: TermId) -> bool {
        matches!(self.node(t), Node::Less(_, k) if k > 1 << 20)
    }

    /// Restricts a term to a range.
    pub(crate) fn bound(&self, d: &mut Decided, t: TermId, range: Range) {
        self.narrow(d, t, range, DEPTH);
    }

    /// Restricts a term and its subterms to a range.
    fn narrow(&self, d: &mut Decided, t: TermId, range: Range, depth: u32) {
        let before = self.range_of(d, t);
        let now = before.and(range);
        if now == before {
            return;
        }
        d.impossible |= now.lo > now.hi;
        let is_first = d.ranges.insert(t, now).is_none();
        if depth == 0 || d.impossible {
            return;
        }
        match self.node(t) {
            // Only zero or more than zero iterations: later ones would distinguish states forever.
            Node::Loop { count, .. } if is_first && now.hi <= 0 => {
                self.narrow(d, count, Range::new(Range::ANY.lo, 0), depth - 1);
            }
            Node::Loop { count, .. } if is_first && now.lo > 0 => {
                self.narrow(d, count, Range::new(1, Range::ANY.hi), depth - 1);
            }
            Node::Sum(list) => {
                // A decision about a loop counter would bound the launch more tightly with every
                // iteration, so it applies to the sum only.
                if self.is_fixed(t) {
                    for (part, bound) in self.bounds_of_parts(d, t, now) {
                        self.narrow(d, part, bound, depth - 1);
                    }
                }
                if let Some((part, k)) = self.primitive(&list) {
                    let up = |x: i128| -((-x).div_euclid(k));
                    let bound = Range::new(up(now.lo), now.hi.div_euclid(k));
                    self.narrow(d, part, bound, depth - 1);
                }
            }
            Node::Div(s, k) => {
                let lo = now.lo.saturating_mul(k).saturating_sub(s.off);
                let hi = now.hi.saturating_mul(k).saturating_add(k - 1 - s.off);
                let bound = Range::new(lo.max(Range::ANY.lo), hi.min(Range::ANY.hi));
                self.narrow(d, s.term, bound, depth - 1);
            }
            Node::Rem(s, k) => {
                if let Some(residue) = now.single() {
                    let bound = Range {
                        modulus: k,
                        residue: (residue - s.off).rem_euclid(k),
                        ..Range::ANY
                    };
                    self.narrow(d, s.term, bound, depth - 1);
                }
            }
            _ => {}
        }
    }

    /// A loop over a part of a count runs. Then the loop over the whole count runs as well, in the
    /// same iteration of the enclosing loops.
    fn whole_loop(&self, d: &mut Decided, of: TermId, least: i128) {
        if let Some(whole) = self.whole_of(of) {
            self.narrow(d, whole, Range::new(least, Range::ANY.hi), 0);
        }
    }

    /// Returns the loop over the whole count of which another loop runs a part, in the same
    /// iteration of the enclosing loops.
    pub(crate) fn whole_of(&self, of: TermId) -> Option<TermId> {
        let Node::Loop {
            count,
            around,
            group,
            n,
        } = self.node(of)
        else {
            return None;
        };
        let Node::Div(Sym { term, off }, k) = self.node(count) else {
            return None;
        };
        let whole = Node::Loop {
            count: term,
            around,
            group,
            n,
        };
        (k > 1 && off < k).then(|| self.find(&whole)).flatten()
    }
}
