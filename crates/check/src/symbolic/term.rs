//! Terms, each kept once.

use super::range::{Range, type_range};
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use warpline_ir::Type;

/// A term, by its number in [`Terms`].
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
    /// A value that anything could be: the result of an atomic or a load.
    Fresh(u32),
    /// The word of a type that global memory holds at an address: memory that the kernel only reads.
    Global(Arg, Type),
    /// The word of a type at a byte of shared memory, as one copy left it.
    Copied(TermId, Arg, Type),
    /// A linear combination of terms, by ascending number, without a constant.
    Sum(Rc<[(TermId, i128)]>),
    /// A product of terms, by ascending number.
    Product(Rc<[TermId]>),
    /// The quotient by a positive constant, rounded down.
    Div(Sym, i128),
    /// The remainder of that.
    Rem(Sym, i128),
    /// The quotient of two integers that are not negative, rounded down.
    Quotient(Arg, Arg),
    /// The remainder of that.
    Remainder(Arg, Arg),
    /// The lesser of two integers.
    Least(Arg, Arg),
    /// The greater of two integers.
    Greatest(Arg, Arg),
    /// The integer of a type that has the same low bits.
    Wrap(Sym, Type),
    /// An unknown function, by number, of operands.
    Function(u32, Rc<[Arg]>, Type),
    /// The term is less than a constant.
    Less(TermId, i128),
    /// The term equals a constant.
    Equal(TermId, i128),
    /// Both predicates.
    Both(Arg, Arg),
    /// Either predicate.
    Either(Arg, Arg),
    /// An unknown predicate, by number, of operands.
    Test(u32, Rc<[Arg]>),
    /// Iterations of a loop from, to and by operands, where the step is no constant.
    Iterations(Arg, Arg, Arg),
    /// The iterations of the `n`-th loop over a count and a group of barriers, inside an
    /// iteration of the loops around it.
    Loop {
        count: TermId,
        around: TermId,
        group: u32,
        n: u32,
    },
    /// A `while` that is so deep inside others.
    While(u32),
    /// The `round`-th iteration of a loop inside another iteration.
    Round {
        around: TermId,
        of: TermId,
        round: u32,
    },
    /// No loop.
    Outside,
    /// The counter of a loop in an iteration: its first value, its step and its end.
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
    /// Does it follow from the launch alone?
    fixed: bool,
    /// Does it follow from the launch, from memory that is only read, and from how far loops are?
    counted: bool,
    /// Is it made without products, unknown functions, minima and maxima?
    linear: bool,
    /// Is it made of no other terms?
    leaf: bool,
    /// How deep it is nested.
    depth: u32,
    /// The integers it may be when nothing is decided, if that is no matter of its operands.
    own: Range,
}

/// All terms of a check.
#[derive(Default)]
pub(crate) struct Terms {
    entries: RefCell<Vec<Entry>>,
    index: RefCell<FxHashMap<Node, TermId>>,
    /// Are states taken together, which tells fewer counts apart?
    pub(crate) loose: Cell<bool>,
    /// Does a loop run over the rest of a count, of which another runs a part?
    pub(crate) rests: Cell<bool>,
}

impl Terms {
    /// A term whose operands bound it.
    pub(crate) fn add(&self, node: Node) -> TermId {
        let own = match &node {
            Node::Wrap(_, ty) | Node::Function(_, _, ty) => type_range(*ty),
            Node::Global(_, ty) | Node::Copied(_, _, ty) => type_range(*ty),
            Node::Iterations(..) => Range::new(0, i128::from(u32::MAX)),
            _ => Range::ANY,
        };
        self.bounded(node, own)
    }

    /// A term that is known to be in a range.
    pub(crate) fn bounded(&self, node: Node, own: Range) -> TermId {
        if let Some(&id) = self.index.borrow().get(&node) {
            return id;
        }
        let fixed = match &node {
            Node::Param(..) | Node::Special(..) | Node::Outside | Node::While(_) => true,
            Node::Fresh(..) | Node::Loop { .. } | Node::Round { .. } | Node::Counter { .. } => {
                false
            }
            Node::Copied(..) => false,
            Node::Sum(list) => list.iter().all(|&(t, _)| self.is_fixed(t)),
            Node::Product(list) => list.iter().all(|&t| self.is_fixed(t)),
            node => {
                let mut fixed = true;
                operands(node, &mut |a| fixed &= self.arg_is_fixed(a));
                fixed
            }
        };
        let mut counted = !matches!(&node, Node::Fresh(..));
        let mut linear = !matches!(
            &node,
            Node::Product(_) | Node::Function(..) | Node::Least(..) | Node::Greatest(..)
        );
        each_term(&node, &mut |t| {
            counted &= self.is_counted(t);
            linear &= self.is_linear(t);
        });
        if let Node::Loop { count, .. } = &node {
            counted &= self.is_counted(*count);
        }
        let mut depth = 0;
        each_term(&node, &mut |t| depth = depth.max(self.depth(t) + 1));
        let mut entries = self.entries.borrow_mut();
        let id = entries.len() as TermId;
        entries.push(Entry {
            node: node.clone(),
            fixed,
            counted,
            linear,
            leaf: matches!(&node, Node::Param(_) | Node::Special(_) | Node::Fresh(_)),
            depth,
            own,
        });
        self.index.borrow_mut().insert(node, id);
        id
    }

    /// The number of a term, if it is there.
    pub(crate) fn find(&self, node: &Node) -> Option<TermId> {
        self.index.borrow().get(node).copied()
    }

    pub(crate) fn node(&self, t: TermId) -> Node {
        self.entries.borrow()[t as usize].node.clone()
    }

    /// Does it follow from the launch alone?
    pub(crate) fn is_fixed(&self, t: TermId) -> bool {
        self.entries.borrow()[t as usize].fixed
    }

    /// Does it follow from the launch, from memory that is only read, and from how far loops are?
    pub(crate) fn is_counted(&self, t: TermId) -> bool {
        self.entries.borrow()[t as usize].counted
    }

    /// Is it made without products, unknown functions, minima and maxima? Then a comparison with
    /// it tells more than its own answer.
    pub(crate) fn is_linear(&self, t: TermId) -> bool {
        self.entries.borrow()[t as usize].linear
    }

    /// Is it made of no other terms?
    pub(super) fn is_leaf(&self, t: TermId) -> bool {
        self.entries.borrow()[t as usize].leaf
    }

    /// How deep it is nested.
    pub(crate) fn depth(&self, t: TermId) -> u32 {
        self.entries.borrow()[t as usize].depth
    }

    /// The term that is zero, for counts that are numbers.
    pub(crate) fn zero(&self) -> TermId {
        let node = Node::Function(u32::MAX, [].into(), Type::U32);
        self.bounded(node, Range::one(0))
    }

    pub(super) fn own(&self, t: TermId) -> Range {
        self.entries.borrow()[t as usize].own
    }

    fn arg_is_fixed(&self, a: &Arg) -> bool {
        match a {
            Arg::Num(_) => true,
            Arg::Sym(Sym { term, .. }) | Arg::Pred { term, .. } => self.is_fixed(*term),
        }
    }
}

/// Calls `each` for the operands of a node, but not for the terms of sums and products.
pub(crate) fn operands(node: &Node, each: &mut dyn FnMut(&Arg)) {
    match node {
        Node::Function(_, args, _) | Node::Test(_, args) => args.iter().for_each(each),
        Node::Both(a, b)
        | Node::Either(a, b)
        | Node::Quotient(a, b)
        | Node::Remainder(a, b)
        | Node::Least(a, b)
        | Node::Greatest(a, b) => {
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

/// Calls `each` for the terms that a node is made of, but not for the loop it stands in.
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
