//! R18, locks that threads make of words: all threads take them in one order.
//!
//! A lock is taken by a loop that swaps a constant into a word until it finds
//! the value of a free lock there, and given back by the next write to the
//! word. A thread that waits for one lock while it holds another orders the
//! two; in a circle of such orders all threads may wait for each other.

use super::Case;
use super::code::{LoopKind, Node};
use super::pointers::{Pointers, Spot};
use super::poll::Poll;
use super::values::Values;
use crate::refusal::{Findings, Rule};
use std::collections::{BTreeMap, BTreeSet};
use warpline_ir::ops::atomic::AtomicOp;
use warpline_ir::{Access, At, Fence, Memory, Op, Sync};

pub(super) const LOCKS: Rule = Rule {
    code: "R18.locks",
    holds: "a lock is taken by an acquire and given back by a release, and threads that hold several take them in one order",
};

/// Refuses locks that are taken in a circle.
pub(super) fn judge<'k>(
    case: &Case<'k>,
    polls: &[Poll],
    pointers: &Pointers,
    found: &mut Findings<'k>,
) {
    let taken: Vec<Taken> = (polls.iter())
        .filter_map(|p| lock(case, p, pointers))
        .collect();
    for lock in &taken {
        let name = name(case, lock.word);
        let op = &case.ops[lock.op];
        found.assume(
            "A.lock",
            op.loc(),
            format!(
                "the lock in {name} is free at launch, each thread that takes it gives it back, and the data it guards is touched under it only"
            ),
        );
    }
    for lock in &taken {
        orders_nothing(case, lock, pointers, found);
    }
    if taken.len() < 2 {
        return;
    }
    let mut order = Order {
        case,
        pointers,
        taken: &taken,
        edges: Vec::new(),
    };
    for role in 0..case.kernel.roles.len() {
        let mut held = Held::new();
        for part in case.code.role(role) {
            order.walk(part, &mut held);
        }
    }
    if let Some(circle) = circle(&order.edges) {
        let first = circle[0];
        let say = |edge: &Edge| {
            let [from, to] = [edge.from, edge.to].map(|w| word_name(case, taken[w].word));
            format!("takes {to} while it holds {from}")
        };
        let op = &case.ops[first.at];
        let text = match circle.len() {
            1 => format!(
                "deadlock: a thread takes the lock {} again while it holds it, and waits for itself",
                word_name(case, taken[first.to].word)
            ),
            _ => format!(
                "deadlock: locks are taken in opposite orders: one thread {}, and another takes them the other way round, so each may wait for the other",
                say(first)
            ),
        };
        found.refuse(&LOCKS, op.loc(), op.site.role, text);
        match circle.as_slice() {
            [one] => {
                let op = &case.ops[one.since];
                found.beside("the lock is taken first here", op.loc(), op.site.role);
            }
            more => {
                for edge in &more[1..] {
                    let op = &case.ops[edge.at];
                    found.beside(
                        format!("another thread {}", say(edge)),
                        op.loc(),
                        op.site.role,
                    );
                }
            }
        }
        found.help("take the locks in the same order everywhere, or give the first one back before the second is taken");
    }
}

/// Refuses a lock that is taken without an acquire, or given back without a release, by the access
/// itself: where no fence stands in the kernel that could make up for it.
fn orders_nothing<'k>(
    case: &Case<'k>,
    lock: &Taken,
    pointers: &Pointers,
    found: &mut Findings<'k>,
) {
    let fences = |op: &super::OpSite| {
        let fence = |s: &Sync| {
            matches!(
                s,
                Sync::Fence(
                    Fence::AcqRel(_) | Fence::Acquire(_) | Fence::Release(_) | Fence::Sc(_)
                )
            )
        };
        op.facts.syncs.iter().any(fence)
    };
    if case.ops.iter().any(fences) {
        return;
    }
    for op in &case.ops {
        let (at, order, takes) = match op.op {
            Op::Atomic(o) if op.id == lock.op => (o.at, o.order, true),
            Op::StrongStore(o) => (o.at, o.order, false),
            _ => continue,
        };
        let At::Global { addr, offset } = at else {
            continue;
        };
        let same = pointers.at(addr, offset) == Some(lock.word);
        let fine = match takes {
            true => order.sem.acquires(),
            false => order.sem.releases(),
        };
        if !same || fine {
            continue;
        }
        let (verb, order) = match takes {
            true => ("taken", "acquire"),
            false => ("given back", "release"),
        };
        let text = format!(
            "missing {order}: the {} is {verb} by {}, which does not order the accesses that the lock guards",
            word_name(case, lock.word),
            op.op.name()
        );
        found.refuse(&LOCKS, op.loc(), op.site.role, text);
        found.help(format!("use `MemoryOrder::{order}(Scope::Gpu)`"));
    }
}

/// A loop that takes a lock.
struct Taken {
    op: usize,
    spins: usize,
    word: Spot,
}

/// The lock that a loop takes: a constant is swapped in until a constant was there.
fn lock(case: &Case, poll: &Poll, pointers: &Pointers) -> Option<Taken> {
    let Op::Atomic(o) = case.ops[poll.op].op else {
        return None;
    };
    let values = Values::new(case, &|_| None);
    let constant = |x| values.of(x, o.ty).single().is_some();
    let swaps = matches!(o.op, AtomicOp::Exch | AtomicOp::Cas);
    let fixed = o.values.iter().copied().chain(o.compare).all(constant);
    Some(Taken {
        op: poll.op,
        spins: poll.spins,
        word: pointers.at(poll.addr, poll.offset)?,
    })
    .filter(|_| swaps && fixed)
}

fn name<'k>(case: &Case<'k>, word: Spot) -> &'k str {
    &case.kernel.param(word.param).name
}

fn word_name(case: &Case, word: Spot) -> String {
    match word.offset() {
        Some(0) | None => format!("lock {}", name(case, word)),
        Some(bytes) => format!("lock {} + {bytes} bytes", name(case, word)),
    }
}

/// Locks that a thread surely holds, each with the op that took it.
type Held = BTreeMap<usize, usize>;

/// A lock that is taken while another is held.
struct Edge {
    from: usize,
    to: usize,
    /// The op that took the one held.
    since: usize,
    /// The op that takes the other.
    at: usize,
    /// All that are held.
    held: BTreeSet<usize>,
}

struct Order<'a, 'k> {
    case: &'a Case<'k>,
    pointers: &'a Pointers,
    taken: &'a [Taken],
    edges: Vec<Edge>,
}

impl Order<'_, '_> {
    /// The number of a word, for all loops that take it.
    fn number(&self, word: Spot) -> Option<usize> {
        let same = |t: &Taken| t.word == word && word.offset().is_some();
        self.taken.iter().position(same)
    }

    fn walk(&mut self, nodes: &[Node], held: &mut Held) {
        for node in nodes {
            match node {
                Node::Op(id) => self.give_back(*id, held),
                Node::If { arms, .. } => {
                    let mut other = held.clone();
                    self.walk(&arms[0], held);
                    self.walk(&arms[1], &mut other);
                    held.retain(|lock, _| other.contains_key(lock));
                }
                // The elected lane is the same every time.
                Node::Elect(body) => self.walk(body, held),
                Node::Loop(id, head, body) => {
                    let mut inside = held.clone();
                    match self.case.code.loops[*id].kind {
                        LoopKind::While { .. } => {
                            self.walk(head, held);
                            inside.clone_from(held);
                            self.walk(body, &mut inside);
                            held.retain(|lock, _| inside.contains_key(lock));
                            self.take(*id, held);
                        }
                        LoopKind::For { .. } => {
                            self.walk(body, &mut inside);
                            held.retain(|lock, _| inside.contains_key(lock));
                        }
                    }
                }
            }
        }
    }

    /// A loop is passed: it may have taken locks.
    fn take(&mut self, id: usize, held: &mut Held) {
        let taken = self.taken;
        for lock in taken.iter().filter(|t| t.spins == id) {
            let Some(to) = self.number(lock.word) else {
                continue;
            };
            for (&from, &since) in held.iter() {
                self.edges.push(Edge {
                    from,
                    to,
                    since,
                    at: lock.op,
                    held: held.keys().copied().collect(),
                });
            }
            held.entry(to).or_insert(lock.op);
        }
    }

    /// A write to the word of a lock gives it back.
    fn give_back(&mut self, id: usize, held: &mut Held) {
        let op = &self.case.ops[id];
        let is_load = matches!(op.op, Op::StrongLoad(_));
        if held.is_empty() || is_load || self.taken.iter().any(|t| t.op == id) {
            return;
        }
        for t in op.facts.touches.iter().filter(|t| t.access != Access::Read) {
            let spot = match t.memory {
                Memory::At(At::Global { addr, offset }, _) => self.pointers.at(addr, offset),
                Memory::Global(addr, _) => self.pointers.at(addr, 0),
                _ => continue,
            };
            let taken = self.taken;
            // A write to an unknown place may give back any of them.
            held.retain(|lock, _| !spot.is_none_or(|s| taken[*lock].word.may_be(s)));
        }
    }
}

/// A circle among the orders, if there is one that no common lock keeps apart.
fn circle(edges: &[Edge]) -> Option<Vec<&Edge>> {
    for (i, first) in edges.iter().enumerate() {
        let mut path = vec![first];
        if first.from == first.to || close(edges, &mut path, i) {
            return Some(path);
        }
    }
    None
}

/// Extends a path of orders to a circle; `least`: edges before it were tried.
fn close<'e>(edges: &'e [Edge], path: &mut Vec<&'e Edge>, least: usize) -> bool {
    let (start, end) = (path[0].from, path[path.len() - 1].to);
    for edge in edges[least..].iter().filter(|e| e.from == end) {
        // Threads that hold a lock in common do not meet here.
        let apart = |e: &&Edge| e.held.is_disjoint(&edge.held);
        if path.iter().any(|e| e.to == edge.to) || !path.iter().all(apart) {
            continue;
        }
        path.push(edge);
        if edge.to == start || close(edges, path, least) {
            return true;
        }
        path.pop();
    }
    false
}
