//! Terms, each stored once.

use super::range::{Range, type_range};
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use warpline_ir::Type;

/// The index of a term in [`Terms`].
pub(crate) type TermId = u32;

/// A term plus a constant.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Sym {
    pub(crate) term: TermId,
    pub(crate) off: i128,
}

/// An operand of a term.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Arg {
    Num(i128),
    Sym(Sym),
    Pred { term: TermId, not: bool },
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Node {
    /// A launch parameter.
    Param(u32),
    /// A special register, by name.
    Special(Rc<str>),
    /// An unconstrained value: the result of an atomic or a load.
    Fresh(u32),
    /// The word of a type at an address of global memory that the kernel only reads.
    Global(Arg, Type),
    /// The word of a type at a byte of shared memory that one copy has written.
    Copied(TermId, Arg, Type),
    /// A linear combination of terms, by ascending index, without a constant.
    Sum(Rc<[(TermId, i128)]>),
    /// A product of terms, by ascending index.
    Product(Rc<[TermId]>),
    /// The quotient by a positive constant, rounded down.
    Div(Sym, i128),
    /// The remainder of a division by a positive constant; never negative.
    Rem(Sym, i128),
    /// The quotient of two non-negative integers, rounded down.
    Quotient(Arg, Arg),
    /// The remainder of the division of two non-negative integers.
    Remainder(Arg, Arg),
    /// The lesser of two integers.
    Min(Arg, Arg),
    /// The greater of two integers.
    Max(Arg, Arg),
    /// The integer of a type that has the same low bits.
    Wrap(Sym, Type),
    /// An unknown function, by number, of operands.
    Function(u32, Rc<[Arg]>, Type),
    /// The term is less than a constant.
    Less(TermId, i128),
    /// The term equals a constant.
    Equal(TermId, i128),
    /// Both predicates hold.
    And(Arg, Arg),
    /// At least one predicate holds.
    Or(Arg, Arg),
    /// An unknown predicate, by number, of operands.
    Test(u32, Rc<[Arg]>),
    /// The trip count of a loop with this start, end and step, where the step is not a constant.
    Iterations(Arg, Arg, Arg),
    /// The iterations of the `n`-th loop over a count and a group of barriers, inside an
    /// iteration of the enclosing loops.
    Loop {
        count: TermId,
        around: TermId,
        group: u32,
        n: u32,
    },
    /// A `while` loop at this nesting depth.
    While(u32),
    /// The `round`-th iteration of a loop inside another iteration.
    Round {
        around: TermId,
        of: TermId,
        round: u32,
    },
    /// No loop.
    Outside,
    /// The counter of a loop in an iteration: first value, step and end.
    Counter {
        of: TermId,
        round: u32,
        from: Arg,
        step: Arg,
        to: Arg,
    },
}

struct Entry {
    node: Node,
    /// Does the term depend on the launch only?
    is_launch_constant: bool,
    /// Does the term depend only on the launch, on memory that the kernel only reads, and on the
    /// current iterations of loops?
    is_counted: bool,
    /// Is the term free of products, unknown functions, minima and maxima?
    is_linear: bool,
    /// Is the term without subterms?
    is_leaf: bool,
    /// The nesting depth.
    depth: u32,
    /// The possible values, whatever the decisions and the operands are.
    base_range: Range,
}

/// Everything that the range of a term follows from: the versions of the decided ranges and truths, and
/// whether states are joined.
pub(super) type RangeKey = (u64, u64, bool);

/// All terms of a check.
#[derive(Default)]
pub(crate) struct Terms {
    entries: RefCell<Vec<Entry>>,
    index: RefCell<FxHashMap<Node, TermId>>,
    /// By term, the last computed range and the decisions that it follows from.
    pub(super) computed_ranges: RefCell<Vec<Option<(RangeKey, Range)>>>,
    /// Are states joined? Then terms distinguish fewer remaining iterations.
    pub(crate) states_are_joined: Cell<bool>,
    /// Does the kernel divide a count into parts with a loop each?
    pub(crate) has_partial_loops: Cell<bool>,
}

impl Terms {
    /// Adds a term whose range follows from its type and its operands.
    pub(crate) fn add(&self, node: Node) -> TermId {
        let base_range = match &node {
            Node::Wrap(_, ty) | Node::Function(_, _, ty) => type_range(*ty),
            Node::Global(_, ty) | Node::Copied(_, _, ty) => type_range(*ty),
            Node::Iterations(..) => Range::new(0, i128::from(u32::MAX)),
            _ => Range::ANY,
        };
        self.bounded(node, base_range)
    }

    /// Adds a term with a known range.
    pub(crate) fn bounded(&self, node: Node, base_range: Range) -> TermId {
        if let Some(&id) = self.index.borrow().get(&node) {
            return id;
        }
        let is_launch_constant = match &node {
            Node::Param(..) | Node::Special(..) | Node::Outside | Node::While(_) => true,
            Node::Fresh(..) | Node::Loop { .. } | Node::Round { .. } | Node::Counter { .. } => {
                false
            }
            Node::Copied(..) => false,
            Node::Sum(list) => list.iter().all(|&(t, _)| self.is_launch_constant(t)),
            Node::Product(list) => list.iter().all(|&t| self.is_launch_constant(t)),
            node => {
                let mut fixed = true;
                operands(node, &mut |a| fixed &= self.arg_is_launch_constant(a));
                fixed
            }
        };
        let mut is_counted = !matches!(&node, Node::Fresh(..));
        let mut is_linear = !matches!(
            &node,
            Node::Product(_) | Node::Function(..) | Node::Min(..) | Node::Max(..)
        );
        each_term(&node, &mut |t| {
            is_counted &= self.is_counted(t);
            is_linear &= self.is_linear(t);
        });
        if let Node::Loop { count, .. } = &node {
            is_counted &= self.is_counted(*count);
        }
        let mut depth = 0;
        each_term(&node, &mut |t| depth = depth.max(self.depth(t) + 1));
        let mut entries = self.entries.borrow_mut();
        let id = entries.len() as TermId;
        entries.push(Entry {
            node: node.clone(),
            is_launch_constant,
            is_counted,
            is_linear,
            is_leaf: matches!(&node, Node::Param(_) | Node::Special(_) | Node::Fresh(_)),
            depth,
            base_range,
        });
        self.index.borrow_mut().insert(node, id);
        id
    }

    /// Returns the index of a term, if the table has it.
    pub(crate) fn find(&self, node: &Node) -> Option<TermId> {
        self.index.borrow().get(node).copied()
    }

    pub(crate) fn node(&self, t: TermId) -> Node {
        self.entries.borrow()[t as usize].node.clone()
    }

    /// Does a term depend on the launch only?
    pub(crate) fn is_launch_constant(&self, t: TermId) -> bool {
        self.entries.borrow()[t as usize].is_launch_constant
    }

    /// Does a term depend only on the launch, on memory that the kernel only reads, and on the
    /// current iterations of loops?
    pub(crate) fn is_counted(&self, t: TermId) -> bool {
        self.entries.borrow()[t as usize].is_counted
    }

    /// Is a term free of products, unknown functions, minima and maxima? Then the result of a
    /// comparison also bounds its subterms.
    pub(crate) fn is_linear(&self, t: TermId) -> bool {
        self.entries.borrow()[t as usize].is_linear
    }

    /// Is a term without subterms?
    pub(super) fn is_leaf(&self, t: TermId) -> bool {
        self.entries.borrow()[t as usize].is_leaf
    }

    /// Returns the nesting depth of a term.
    pub(crate) fn depth(&self, t: TermId) -> u32 {
        self.entries.borrow()[t as usize].depth
    }

    /// Returns the term zero, the count of every loop whose trip count is a constant.
    pub(crate) fn zero(&self) -> TermId {
        let node = Node::Function(u32::MAX, [].into(), Type::U32);
        self.bounded(node, Range::exactly(0))
    }

    /// Returns the possible values of a term, whatever the decisions and the operands are.
    pub(super) fn base_range(&self, t: TermId) -> Range {
        self.entries.borrow()[t as usize].base_range
    }

    fn arg_is_launch_constant(&self, a: &Arg) -> bool {
        match a {
            Arg::Num(_) => true,
            Arg::Sym(Sym { term, .. }) | Arg::Pred { term, .. } => self.is_launch_constant(*term),
        }
    }
}

/// Calls `each` for the operands of a node, but not for the terms of sums and products.
pub(crate) fn operands(node: &Node, each: &mut dyn FnMut(&Arg)) {
    match node {
        Node::Function(_, args, _) | Node::Test(_, args) => args.iter().for_each(each),
        Node::And(a, b)
        | Node::Or(a, b)
        | Node::Quotient(a, b)
        | Node::Remainder(a, b)
        | Node::Min(a, b)
        | Node::Max(a, b) => {
            each(a);
            each(b);
        }
        Node::Div(s, _) | Node::Rem(s, _) | Node::Wrap(s, _) => each(&Arg::Sym(*s)),
        Node::Less(term, _) | Node::Equal(term, _) => each(&Arg::Sym(Sym {
            term: *term,
            off: 0,
        })),
        Node::Global(a, _) | Node::Copied(_, a, _) => each(a),
        Node::Iterations(a, b, c)
        | Node::Counter {
            from: a,
            step: b,
            to: c,
            ..
        } => [a, b, c].into_iter().for_each(each),
        _ => {}
    }
}

/// Calls `each` for the subterms of a node, but not for its enclosing loop.
pub(super) fn each_term(node: &Node, each: &mut dyn FnMut(TermId)) {
    match node {
        Node::Sum(list) => list.iter().for_each(|&(t, _)| each(t)),
        Node::Product(list) => list.iter().for_each(|&t| each(t)),
        node => operands(node, &mut |a| match a {
            Arg::Num(_) => {}
            Arg::Sym(Sym { term, .. }) | Arg::Pred { term, .. } => each(*term),
        }),
    }
}
