//! Decisions about terms, and the predicates that they imply.
//!
//! The protocol search meets predicates that depend on the launch, such as `n < 64`. If the
//! decisions so far imply no result, it asks a [`Question`] and explores both answers.
//! [`Decisions`] collects the answers along one branch of that search.

use super::range::Range;
use super::term::{Arg, Node, Sym, TermId, Terms};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Deref;
use warpline_ir::ops::compare::Cmp;

/// The decisions made so far.
#[derive(Clone, Default, Debug)]
pub(crate) struct Decisions {
    pub(crate) ranges: ByTerm<Range>,
    pub(crate) truths: ByTerm<bool>,
    /// By term, `(m, r)`: its residue modulo `m` is greater than `r`.
    pub(crate) residues: BTreeMap<TermId, (i128, i128)>,
    /// Do the decisions contradict each other? Then no launch leads to this state.
    pub(crate) contradictory: bool,
}

/// The decisions by term, with a version: equal versions mean equal contents.
#[derive(Clone, Debug)]
pub(crate) struct ByTerm<V> {
    values: BTreeMap<TermId, V>,
    version: u64,
}

impl<V> Default for ByTerm<V> {
    fn default() -> Self {
        Self {
            values: BTreeMap::new(),
            version: 0,
        }
    }
}

thread_local! {
    /// The last version of this thread; 0 is the version of empty contents.
    static LAST_VERSION: Cell<u64> = const { Cell::new(0) };
}

impl<V: Clone + PartialEq> ByTerm<V> {
    /// Returns the version of the contents.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    fn changed(&mut self) {
        self.version = LAST_VERSION.get() + 1;
        LAST_VERSION.set(self.version);
    }

    /// Sets the value of a term and returns the previous one.
    pub(crate) fn insert(&mut self, t: TermId, value: V) -> Option<V> {
        let before = self.values.insert(t, value.clone());
        if before.as_ref() != Some(&value) {
            self.changed();
        }
        before
    }

    /// Removes the value of a term.
    pub(crate) fn remove(&mut self, t: TermId) {
        if self.values.remove(&t).is_some() {
            self.changed();
        }
    }

    /// Keeps the values of some terms.
    pub(crate) fn retain(&mut self, keeps: impl Fn(TermId) -> bool) {
        let before = self.values.len();
        self.values.retain(|&t, _| keeps(t));
        if self.values.len() != before {
            self.changed();
        }
    }
}

impl<V> Deref for ByTerm<V> {
    type Target = BTreeMap<TermId, V>;
    fn deref(&self) -> &Self::Target {
        &self.values
    }
}

/// The truth of a predicate, or the question to decide first.
pub(crate) type Truth = Result<bool, Question>;

/// A question about the launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Question {
    /// Does a predicate hold?
    Holds(TermId),
    /// Does a loop run more iterations than this?
    RunsMoreThan { of: TermId, than: i128 },
    /// Does a term have this residue?
    HasResidue {
        term: TermId,
        modulus: i128,
        residue: i128,
    },
}

/// The nesting depth to which a decision about a term propagates to its subterms.
const PROPAGATION_DEPTH: u32 = 4;

impl Terms {
    /// Returns the result of a comparison if it is known, else the predicate to decide.
    pub(crate) fn compare(&self, d: &Decisions, cmp: Cmp, a: Arg, b: Arg) -> Result<bool, Arg> {
        // a < b is a - b < 0. The canonical term is either the difference or its negation.
        let (a, b, less, not) = match cmp {
            Cmp::Lt => (a, b, true, false),
            Cmp::Ge => (a, b, true, true),
            Cmp::Gt => (b, a, true, false),
            Cmp::Le => (b, a, true, true),
            Cmp::Eq => (a, b, false, false),
            Cmp::Ne => (a, b, false, true),
        };
        let Some((difference, negated)) = self.difference(a, b) else {
            let term = self.add(Node::Test(u32::MAX - u32::from(less), [a, b].into()));
            return Err(Arg::Pred { term, not });
        };
        let (node, not) = match (difference, less) {
            (Arg::Num(x), true) => return Ok((if negated { -x } else { x } < 0) != not),
            (Arg::Num(x), false) => return Ok((x == 0) != not),
            // The difference is -(t + off), so a < b is 0 < t + off, which is !(t < 1 - off).
            (Arg::Sym(s), true) if negated => (Node::Less(s.term, 1 - s.off), !not),
            (Arg::Sym(s), true) => (Node::Less(s.term, -s.off), not),
            (Arg::Sym(s), false) => (Node::Equal(s.term, -s.off), not),
            (Arg::Pred { .. }, _) => return Err(difference),
        };
        let term = self.add(node);
        let p = Arg::Pred { term, not };
        self.truth(d, p).map_err(|_| p)
    }

    /// Returns whether one operand is less than another, if that is known.
    pub(super) fn less(&self, d: &Decisions, a: Arg, b: Arg) -> Option<bool> {
        self.compare(d, Cmp::Lt, a, b).ok()
    }

    /// Returns the truth of a predicate.
    pub(crate) fn truth(&self, d: &Decisions, p: Arg) -> Truth {
        let (term, not) = match p {
            Arg::Num(x) => return Ok(x != 0),
            Arg::Pred { term, not } => (term, not),
            Arg::Sym(s) => (s.term, false),
        };
        if let Some(&known) = d.truths.get(&term) {
            return Ok(known != not);
        }
        let known = match self.node(term) {
            node @ (Node::Less(..) | Node::Equal(..)) => self.truth_by_range(d, &node),
            Node::And(a, b) => match (self.truth(d, a), self.truth(d, b)) {
                (Ok(false), _) | (_, Ok(false)) => Some(false),
                (Ok(true), Ok(true)) => Some(true),
                (Err(q), _) | (_, Err(q)) => return Err(q),
            },
            Node::Or(a, b) => match (self.truth(d, a), self.truth(d, b)) {
                (Ok(true), _) | (_, Ok(true)) => Some(true),
                (Ok(false), Ok(false)) => Some(false),
                (Err(q), _) | (_, Err(q)) => return Err(q),
            },
            _ => None,
        };
        known.map(|k| k != not).ok_or(Question::Holds(term))
    }

    /// Returns the result of a comparison, if the range of its term implies one.
    fn truth_by_range(&self, d: &Decisions, comparison: &Node) -> Option<bool> {
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
    pub(crate) fn answer(&self, d: &Decisions, q: Question) -> Option<bool> {
        match q {
            Question::Holds(term) => self.truth(d, Arg::Pred { term, not: false }).ok(),
            Question::RunsMoreThan { of, than } => {
                let range = self.range_of(d, of);
                match () {
                    _ if range.lo > than => Some(true),
                    _ if range.hi <= than => Some(false),
                    _ => None,
                }
            }
            Question::HasResidue {
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
    pub(crate) fn next_residue(&self, d: &Decisions, term: TermId, modulus: i128) -> Question {
        let out = d.residues.get(&term).filter(|r| r.0 == modulus);
        Question::HasResidue {
            term,
            modulus,
            residue: out.map_or(0, |r| r.1 + 1),
        }
    }

    /// Records the answer to a question, and whether it contradicts earlier decisions.
    pub(crate) fn decide(&self, d: &mut Decisions, q: Question, yes: bool) {
        self.record(d, q, yes);
        d.contradictory |= !self.states_are_joined.get() && self.contradicts(d);
    }

    /// Do the ranges show that decisions about the launch contradict each other? Decisions about
    /// iterations do not count, because one state also represents states with more iterations.
    fn contradicts(&self, d: &Decisions) -> bool {
        let empty = |t: &TermId| {
            let range = self.range_of(d, *t);
            range.lo > range.hi
        };
        let fixed = |t: &&TermId| self.is_launch_constant(**t);
        let refuted =
            |(&p, &known): (&TermId, &bool)| self.truth_by_range(d, &self.node(p)) == Some(!known);
        let truths = d
            .truths
            .iter()
            .filter(|(t, _)| self.is_launch_constant(**t));
        d.ranges.keys().filter(fixed).any(empty) || { truths }.any(refuted)
    }

    fn record(&self, d: &mut Decisions, q: Question, yes: bool) {
        match q {
            Question::RunsMoreThan { of, than } => {
                let range = match yes {
                    true => Range::new(than + 1, Range::ANY.hi),
                    false => Range::new(Range::ANY.lo, than),
                };
                self.narrow(d, of, range, PROPAGATION_DEPTH);
                if yes && self.has_partial_loops.get() {
                    self.extend_to_whole_loop(d, of, than + 1);
                }
            }
            Question::HasResidue {
                term,
                modulus,
                residue,
            } => {
                // Residues are excluded in ascending order. If one remains, it holds.
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
            Question::Holds(term) => match self.node(term) {
                Node::Less(t, k) => {
                    let range = match yes {
                        true => Range::new(Range::ANY.lo, k - 1),
                        false => Range::new(k, Range::ANY.hi),
                    };
                    self.narrow(d, t, range, PROPAGATION_DEPTH);
                }
                Node::Equal(t, k) if yes => self.narrow(d, t, Range::exactly(k), PROPAGATION_DEPTH),
                Node::Equal(t, k) => {
                    let range = self.range_of(d, t);
                    match k {
                        _ if k == range.lo => {
                            self.narrow(d, t, Range::new(k + 1, Range::ANY.hi), PROPAGATION_DEPTH)
                        }
                        _ if k == range.hi => {
                            self.narrow(d, t, Range::new(Range::ANY.lo, k - 1), PROPAGATION_DEPTH)
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

    /// Does a predicate test whether a term stays within its type?
    pub(crate) fn is_overflow_test(&self, t: TermId) -> bool {
        matches!(self.node(t), Node::Less(_, k) if k > 1 << 20)
    }

    /// Restricts a term to a range, and its subterms accordingly.
    pub(crate) fn restrict(&self, d: &mut Decisions, t: TermId, range: Range) {
        self.narrow(d, t, range, PROPAGATION_DEPTH);
    }

    /// Restricts a term to a range, and its subterms down to a nesting depth.
    fn narrow(&self, d: &mut Decisions, t: TermId, range: Range, depth: u32) {
        let before = self.range_of(d, t);
        let now = before.and(range);
        if now == before {
            return;
        }
        d.contradictory |= now.lo > now.hi;
        let is_first = d.ranges.insert(t, now).is_none();
        if depth == 0 || d.contradictory {
            return;
        }
        match self.node(t) {
            // The count learns only whether the loop runs at all. A bound that tightens with each
            // iteration would make every state a new one.
            Node::Loop { count, .. } if is_first && now.hi <= 0 => {
                self.narrow(d, count, Range::new(Range::ANY.lo, 0), depth - 1);
            }
            Node::Loop { count, .. } if is_first && now.lo > 0 => {
                self.narrow(d, count, Range::new(1, Range::ANY.hi), depth - 1);
            }
            Node::Sum(list) => {
                // A loop counter would bound the launch more tightly with every iteration, so a
                // decision about it applies to the sum only.
                if self.is_launch_constant(t) {
                    for (subterm, bound) in self.bounds_of_terms(d, t, now) {
                        self.narrow(d, subterm, bound, depth - 1);
                    }
                }
                if let Some((subterm, k)) = self.primitive(&list) {
                    let up = |x: i128| -((-x).div_euclid(k));
                    let bound = Range::new(up(now.lo), now.hi.div_euclid(k));
                    self.narrow(d, subterm, bound, depth - 1);
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

    /// Records that the loop over a whole count runs, because a loop over a part of it does.
    fn extend_to_whole_loop(&self, d: &mut Decisions, of: TermId, least: i128) {
        if let Some(whole) = self.whole_loop(of) {
            self.narrow(d, whole, Range::new(least, Range::ANY.hi), 0);
        }
    }

    /// Returns the loop over `n` for a loop over `n / k`, in the same iteration of the enclosing
    /// loops.
    pub(crate) fn whole_loop(&self, of: TermId) -> Option<TermId> {
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
