//! Numbers that a launch decides, as terms; and what has been decided of them.
//!
//! A register whose value does not follow from the program alone holds a
//! *term*: the same computation from the same parameters is the same term in
//! every role, so what is decided of it for one is decided for all.

use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use warpline_ir::ops::compare::Cmp;

/// A term, by its number in [`Terms`].
pub(super) type TermId = u32;

/// A term plus a constant.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Sym {
    pub(super) term: TermId,
    pub(super) off: i64,
}

/// An operand of a term.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Arg {
    Num(i64),
    Sym(Sym),
    Pred { term: TermId, not: bool },
}

/// How a term follows from its operands, where that says something of its range.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Shape {
    Add,
    Mul,
    Div,
    Rem,
    Min,
    Max,
    /// Anything that is not below zero.
    Natural,
    Any,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Node {
    /// A launch parameter, and its least value.
    Param(u32, i64),
    /// A special register, by name.
    Special(Rc<str>, i64),
    /// A value that anything could be: what an atomic or a load gave.
    Fresh(u32, i64),
    /// An op of a kind on operands.
    Op(u32, Shape, Rc<[Arg]>),
    /// `a < b`.
    Less(Arg, Arg),
    /// `a == b`.
    Equal(Arg, Arg),
    /// Both predicates.
    Both(Arg, Arg),
    /// Either predicate.
    Either(Arg, Arg),
    /// Rounds of a loop, where they are not a term plus a constant.
    Rounds(Arg, Arg, Arg),
    /// The rounds of the `n`-th loop over a count inside a round of the loops around it.
    Loop {
        count: TermId,
        around: TermId,
        n: u32,
    },
    /// A `while` that is so deep inside others.
    While(u32),
    /// The `round`-th round of a loop inside another round.
    Round {
        around: TermId,
        of: TermId,
        round: u32,
    },
    /// No loop.
    Outside,
    /// The counter of a loop in a round, from a start and by a step.
    Counter {
        of: TermId,
        round: u32,
        from: Arg,
        step: Arg,
    },
}

/// All terms of a check.
#[derive(Default)]
pub(super) struct Terms {
    nodes: RefCell<Vec<(Node, bool, u32)>>,
    index: RefCell<FxHashMap<Node, TermId>>,
}

/// The range of numbers when nothing is known.
const ANY: (i64, i64) = (i32::MIN as i64, u32::MAX as i64);

/// What has been decided.
#[derive(Clone, Default, Debug)]
pub(super) struct Decided {
    pub(super) ranges: BTreeMap<TermId, (i64, i64)>,
    pub(super) truths: BTreeMap<TermId, bool>,
}

/// The answer to a predicate: known, or what must be decided first.
pub(super) type Truth = Result<bool, Question>;

/// What must be decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Question {
    /// A comparison.
    Is(TermId),
    /// Has a loop more rounds than this?
    More { of: TermId, than: i64 },
}

impl Terms {
    pub(super) fn add(&self, node: Node) -> TermId {
        if let Some(&id) = self.index.borrow().get(&node) {
            return id;
        }
        let fixed = match &node {
            Node::Param(..) | Node::Special(..) | Node::Outside | Node::While(_) => true,
            Node::Fresh(..) | Node::Loop { .. } | Node::Round { .. } | Node::Counter { .. } => {
                false
            }
            Node::Op(_, _, args) => args.iter().all(|a| self.arg_fixed(a)),
            Node::Less(a, b) | Node::Equal(a, b) | Node::Both(a, b) | Node::Either(a, b) => {
                self.arg_fixed(a) && self.arg_fixed(b)
            }
            Node::Rounds(a, b, c) => [a, b, c].into_iter().all(|a| self.arg_fixed(a)),
        };
        let mut deep = 0;
        operands(&node, &mut |a| deep = deep.max(self.arg_depth(a) + 1));
        let mut nodes = self.nodes.borrow_mut();
        let id = nodes.len() as TermId;
        nodes.push((node.clone(), fixed, deep));
        self.index.borrow_mut().insert(node, id);
        id
    }

    fn arg_fixed(&self, a: &Arg) -> bool {
        match a {
            Arg::Num(_) => true,
            Arg::Sym(s) => self.is_fixed(s.term),
            Arg::Pred { term, .. } => self.is_fixed(*term),
        }
    }

    fn arg_depth(&self, a: &Arg) -> u32 {
        match a {
            Arg::Num(_) => 0,
            Arg::Sym(Sym { term, .. }) | Arg::Pred { term, .. } => self.depth(*term),
        }
    }

    pub(super) fn node(&self, t: TermId) -> Node {
        self.nodes.borrow()[t as usize].0.clone()
    }

    /// Does it follow from the launch alone?
    pub(super) fn is_fixed(&self, t: TermId) -> bool {
        self.nodes.borrow()[t as usize].1
    }

    /// How deep it is nested.
    pub(super) fn depth(&self, t: TermId) -> u32 {
        self.nodes.borrow()[t as usize].2
    }

    /// A sum of terms, each times a number, and a constant: adds `times` of an operand.
    pub(super) fn linear(&self, a: Arg, times: i64, sum: &mut BTreeMap<TermId, i64>) -> i64 {
        let Arg::Sym(s) = a else {
            let Arg::Num(x) = a else { return 0 };
            return times * x;
        };
        let rest = times * s.off;
        match self.node(s.term) {
            Node::Op(_, Shape::Add, args) => {
                let parts = args.iter().map(|&a| self.linear(a, times, sum));
                rest + parts.sum::<i64>()
            }
            Node::Op(_, Shape::Mul, args) => match args[..] {
                [a, Arg::Num(x)] | [Arg::Num(x), a] => rest + self.linear(a, times * x, sum),
                _ => rest + term(sum, s.term, times),
            },
            _ => rest + term(sum, s.term, times),
        }
    }

    /// A comparison, as a known answer or a predicate.
    pub(super) fn compare(&self, d: &Decided, cmp: Cmp, a: Arg, b: Arg) -> Result<bool, Arg> {
        let less = |a, b, not| (Node::Less(a, b), not);
        let (node, not) = match cmp {
            Cmp::Lt => less(a, b, false),
            Cmp::Gt => less(b, a, false),
            Cmp::Ge => less(a, b, true),
            Cmp::Le => less(b, a, true),
            Cmp::Eq => (Node::Equal(a, b), false),
            Cmp::Ne => (Node::Equal(a, b), true),
        };
        let term = self.add(node);
        match self.truth(d, Arg::Pred { term, not }) {
            Ok(known) => Ok(known),
            Err(_) => Err(Arg::Pred { term, not }),
        }
    }

    /// Is a predicate decided?
    pub(super) fn truth(&self, d: &Decided, p: Arg) -> Truth {
        let (term, not) = match p {
            Arg::Num(x) => return Ok(x != 0),
            Arg::Pred { term, not } => (term, not),
            Arg::Sym(s) => (s.term, false),
        };
        if let Some(&known) = d.truths.get(&term) {
            return Ok(known != not);
        }
        let known = match self.node(term) {
            Node::Less(a, b) => {
                let ((alo, ahi), (blo, bhi)) = (self.range(d, a), self.range(d, b));
                match (a, b) {
                    (Arg::Sym(x), Arg::Sym(y)) if x.term == y.term => Some(x.off < y.off),
                    _ if ahi < blo => Some(true),
                    _ if alo >= bhi => Some(false),
                    _ => None,
                }
            }
            Node::Equal(a, b) => {
                let ((alo, ahi), (blo, bhi)) = (self.range(d, a), self.range(d, b));
                match (a, b) {
                    (Arg::Sym(x), Arg::Sym(y)) if x.term == y.term => Some(x.off == y.off),
                    _ if ahi < blo || bhi < alo => Some(false),
                    _ if alo == ahi && (alo, ahi) == (blo, bhi) => Some(true),
                    _ => None,
                }
            }
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

    /// The numbers an operand may be.
    pub(super) fn range(&self, d: &Decided, a: Arg) -> (i64, i64) {
        match a {
            Arg::Num(x) => (x, x),
            Arg::Pred { .. } => (0, 1),
            Arg::Sym(s) => {
                let (lo, hi) = self.range_of(d, s.term);
                (lo.saturating_add(s.off), hi.saturating_add(s.off))
            }
        }
    }

    pub(super) fn range_of(&self, d: &Decided, t: TermId) -> (i64, i64) {
        if let Some(&r) = d.ranges.get(&t) {
            return r;
        }
        match self.node(t) {
            Node::Param(_, least) | Node::Special(_, least) | Node::Fresh(_, least) => {
                (least, i64::from(u32::MAX))
            }
            Node::Rounds(from, to, _) => match self.known_less(d, from, to) {
                Some(true) => (1, i64::from(u32::MAX)),
                Some(false) => (0, 0),
                None => (0, i64::from(u32::MAX)),
            },
            Node::Counter { .. } => (0, i64::from(u32::MAX)),
            Node::Loop { count, .. } => self.range_of(d, count),
            Node::Op(_, shape, args) => {
                let r: Vec<_> = args.iter().map(|&a| self.range(d, a)).collect();
                let positive = r.iter().all(|r| r.0 >= 0);
                match (shape, &r[..]) {
                    (Shape::Add, [a, b]) => (a.0.saturating_add(b.0), a.1.saturating_add(b.1)),
                    (Shape::Mul, [a, b]) if positive => {
                        (a.0.saturating_mul(b.0), a.1.saturating_mul(b.1))
                    }
                    (Shape::Div, [a, b]) if positive && b.0 > 0 => (a.0 / b.1, a.1 / b.0),
                    (Shape::Rem, [a, b]) if positive && b.0 > 0 => (0, a.1.min(b.1 - 1)),
                    (Shape::Min, [a, b]) => (a.0.min(b.0), a.1.min(b.1)),
                    (Shape::Max, [a, b]) => (a.0.max(b.0), a.1.max(b.1)),
                    (Shape::Natural, _) => (0, i64::from(u32::MAX)),
                    _ => ANY,
                }
            }
            _ => ANY,
        }
    }

    /// Whether one operand is less than another, if somebody has asked.
    fn known_less(&self, d: &Decided, a: Arg, b: Arg) -> Option<bool> {
        let term = self.index.borrow().get(&Node::Less(a, b)).copied()?;
        d.truths.get(&term).copied()
    }

    /// A remainder is zero: what it is of is a multiple.
    fn divides(&self, d: &mut Decided, t: TermId, x: i64) {
        if let (Node::Op(_, Shape::Rem, args), 0) = (self.node(t), x)
            && let [Arg::Sym(s), Arg::Num(by)] = args[..]
            && by > 0
            && s.off == 0
        {
            let (lo, hi) = self.range_of(d, s.term);
            if lo > 0 {
                let up = lo.div_euclid(by) * by;
                let lo = if up < lo { up + by } else { up };
                d.ranges.insert(s.term, (lo, hi));
            }
        }
    }

    /// Decides a question.
    pub(super) fn decide(&self, d: &mut Decided, q: Question, yes: bool) {
        match q {
            Question::More { of, than } => {
                let (lo, hi) = self.range_of(d, of);
                let r = if yes {
                    (lo.max(than + 1), hi)
                } else {
                    (lo, hi.min(than))
                };
                d.ranges.insert(of, r);
            }
            Question::Is(term) => {
                let node = self.node(term);
                match node {
                    Node::Less(Arg::Num(x), Arg::Sym(s)) => {
                        let (lo, hi) = self.range_of(d, s.term);
                        let r = match yes {
                            true => (lo.max(x + 1 - s.off), hi),
                            false => (lo, hi.min(x - s.off)),
                        };
                        d.ranges.insert(s.term, r);
                    }
                    Node::Less(Arg::Sym(s), Arg::Num(x)) => {
                        let (lo, hi) = self.range_of(d, s.term);
                        let r = match yes {
                            true => (lo, hi.min(x - 1 - s.off)),
                            false => (lo.max(x - s.off), hi),
                        };
                        d.ranges.insert(s.term, r);
                    }
                    Node::Equal(Arg::Num(x), Arg::Sym(s))
                    | Node::Equal(Arg::Sym(s), Arg::Num(x)) => {
                        let (lo, hi) = self.range_of(d, s.term);
                        let x = x - s.off;
                        if yes {
                            d.ranges.insert(s.term, (x, x));
                            self.divides(d, s.term, x);
                        } else if x == lo {
                            d.ranges.insert(s.term, (lo + 1, hi));
                        } else {
                            d.truths.insert(term, false);
                        }
                    }
                    _ => {
                        d.truths.insert(term, yes);
                    }
                }
            }
        }
    }
}

/// Calls `each` for the operands of a node.
pub(super) fn operands(node: &Node, each: &mut dyn FnMut(&Arg)) {
    match node {
        Node::Op(_, _, args) => args.iter().for_each(each),
        Node::Less(a, b)
        | Node::Equal(a, b)
        | Node::Both(a, b)
        | Node::Either(a, b)
        | Node::Counter {
            from: a, step: b, ..
        } => {
            each(a);
            each(b);
        }
        Node::Rounds(a, b, c) => [a, b, c].into_iter().for_each(each),
        _ => {}
    }
}

/// Adds a term to a sum; gives the constant it brings: none.
fn term(sum: &mut BTreeMap<TermId, i64>, t: TermId, times: i64) -> i64 {
    let n = sum.entry(t).or_insert(0);
    *n += times;
    if *n == 0 {
        sum.remove(&t);
    }
    0
}
