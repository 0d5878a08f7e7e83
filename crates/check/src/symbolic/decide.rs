//! Decisions about terms, and predicates that follow from them.

use super::range::Range;
use super::term::{Arg, Node, Sym, TermId, Terms};
use std::collections::BTreeMap;
use warpline_ir::ops::compare::Cmp;

/// What has been decided.
#[derive(Clone, Default, Debug)]
pub(crate) struct Decided {
    pub(crate) ranges: BTreeMap<TermId, Range>,
    pub(crate) truths: BTreeMap<TermId, bool>,
    /// By term: of its residues modulo the first number, those up to the second are ruled out.
    pub(crate) residues: BTreeMap<TermId, (i128, i128)>,
    /// Do the decisions contradict each other? Then no launch leads here.
    pub(crate) impossible: bool,
}

/// The answer to a predicate: known, or what must be decided first.
pub(crate) type Truth = Result<bool, Question>;

/// What must be decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Question {
    /// Does a predicate hold?
    Is(TermId),
    /// Has a loop more iterations than this?
    More { of: TermId, than: i128 },
    /// Does a term leave a residue?
    Leaves {
        term: TermId,
        modulus: i128,
        residue: i128,
    },
}

/// How far a decision about a term is followed to the terms it is made of.
const DEPTH: u32 = 4;

impl Terms {
    /// A comparison, as a known answer or a predicate.
    pub(crate) fn compare(&self, d: &Decided, cmp: Cmp, a: Arg, b: Arg) -> Result<bool, Arg> {
        // a < b is a - b < 0; of a difference and its opposite one is kept.
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
            // t + off < 0, or, turned, 0 < t + off: not t < 1 - off.
            (Arg::Sym(s), true) if turned => (Node::Less(s.term, 1 - s.off), !not),
            (Arg::Sym(s), true) => (Node::Less(s.term, -s.off), not),
            (Arg::Sym(s), false) => (Node::Equal(s.term, -s.off), not),
            (Arg::Pred { .. }, _) => return Err(difference),
        };
        let term = self.add(node);
        let p = Arg::Pred { term, not };
        self.truth(d, p).map_err(|_| p)
    }

    /// Is one operand known to be less than another?
    pub(super) fn less(&self, d: &Decided, a: Arg, b: Arg) -> Option<bool> {
        self.compare(d, Cmp::Lt, a, b).ok()
    }

    /// Is a predicate decided?
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

    /// The answer to a comparison that follows from the range of its term.
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

    /// Is a question decided?
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

    /// The question whose answer tells a term's residue apart from others.
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

    /// Do decisions about the launch contradict each other, as far as their terms show? Those
    /// about iterations do not count: a state stands for others with more of them.
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
                // All residues but the last are ruled out: it is the last.
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

    /// Is a predicate a comparison with a number so large that few are larger?
    pub(crate) fn is_bound(&self, t: TermId) -> bool {
        matches!(self.node(t), Node::Less(_, k) if k > 1 << 20)
    }

    /// Decides that a term is in a range.
    pub(crate) fn bound(&self, d: &mut Decided, t: TermId, range: Range) {
        self.narrow(d, t, range, DEPTH);
    }

    /// A term is in a range, and so are the terms it is made of.
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
            // No iteration at all, or some: later ones would tell states apart for ever.
            Node::Loop { count, .. } if is_first && now.hi <= 0 => {
                self.narrow(d, count, Range::new(Range::ANY.lo, 0), depth - 1);
            }
            Node::Loop { count, .. } if is_first && now.lo > 0 => {
                self.narrow(d, count, Range::new(1, Range::ANY.hi), depth - 1);
            }
            Node::Sum(list) => {
                // What an iteration decides of its counter would bound the launch more tightly with
                // every iteration: it stays with the sum.
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

    /// A loop over a part of a count has some iterations: so has, in the same iteration of the
    /// loops around, the loop over all of it.
    fn whole_loop(&self, d: &mut Decided, of: TermId, least: i128) {
        if let Some(whole) = self.whole_of(of) {
            self.narrow(d, whole, Range::new(least, Range::ANY.hi), 0);
        }
    }

    /// The loop over a count that another loop runs a part of, in the same iteration of the loops
    /// around.
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
