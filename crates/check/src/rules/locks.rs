//! R18, spin locks in global memory: all threads take them in one order.
//!
//! A loop takes a lock: it swaps a constant into a word until the old value is that of a free lock.
//! The next write to the word frees the lock. A thread that waits for one lock while it holds
//! another one orders the two. A cycle of such orders is a deadlock.

use super::RuleContext;
use super::bounds::BoundsQuery;
use super::control_flow::{LoopKind, Node};
use super::global_words::{GlobalWord, Pointers};
use super::poll::Poll;
use crate::codes;
use crate::diagnostic::{Findings, Message, Rule};
use std::collections::{BTreeMap, BTreeSet};
use warpline_ir::ops::atomic::AtomicOp;
use warpline_ir::{FenceKind, MemoryAddress, MemoryRegion, Op, SyncOp};

pub(super) const LOCKS: Rule = codes::R18_LOCKS;

/// Reports locks that are taken in a cycle.
pub(super) fn check<'k>(
    cx: &RuleContext<'k>,
    polls: &[Poll],
    pointers: &Pointers,
    found: &mut Findings<'k>,
) {
    let taken: Vec<LockLoop> = (polls.iter())
        .filter_map(|p| lock(cx, p, pointers))
        .collect();
    for lock in &taken {
        let name = param_name(cx, lock.word);
        let op = &cx.ops[lock.op];
        found.assume(
            &codes::A_LOCK,
            op.loc(),
            format!(
                "the lock in {name} is free at launch, each thread that takes it frees it, and the data it guards is accessed only under it"
            ),
        );
    }
    for lock in &taken {
        check_memory_order(cx, lock, pointers, found);
    }
    if taken.len() < 2 {
        return;
    }
    let mut order = LockOrder {
        cx,
        pointers,
        taken: &taken,
        edges: Vec::new(),
    };
    for role in 0..cx.kernel.roles.len() {
        let mut held = HeldLocks::new();
        for part in cx.code.role(role) {
            order.walk(part, &mut held);
        }
    }
    if let Some(cycle) = cycle(&order.edges) {
        let first = cycle[0];
        let edge_text = |edge: &Edge| {
            let [from, to] = [edge.from, edge.to].map(|w| word_name(cx, taken[w].word));
            format!("takes {to} while it holds {from}")
        };
        let op = &cx.ops[first.at];
        let text = match cycle.len() {
            1 => Message::new(format!(
                "a thread takes {} again while it holds it",
                word_name(cx, taken[first.to].word)
            ))
            .title("deadlock: lock taken twice")
            .label("takes the lock again here")
            .cause("the thread waits for itself"),
            2 => Message::new(format!(
                "one thread {}, and another thread takes them in the opposite order",
                edge_text(first)
            ))
            .title("deadlock: locks taken in opposite orders")
            .label(format!("{} here", edge_text(first)))
            .cause("each thread may hold the lock that the other waits for"),
            n => Message::new(format!(
                "{n} threads each hold one lock of a cycle and wait for the next: one thread {}",
                edge_text(first)
            ))
            .title("deadlock: locks taken in a cycle")
            .label(format!("{} here", edge_text(first)))
            .cause("each thread may hold the lock that another one waits for"),
        };
        found.report(&LOCKS, op.loc(), op.site.role, text);
        match cycle.as_slice() {
            [one] => {
                let op = &cx.ops[one.since];
                found.label("takes the lock the first time here", op.loc(), op.site.role);
            }
            more => {
                for edge in &more[1..] {
                    let op = &cx.ops[edge.at];
                    found.label(
                        format!("another thread {} here", edge_text(edge)),
                        op.loc(),
                        op.site.role,
                    );
                }
            }
        }
    }
}

/// Reports ops that take a lock without an acquire or free it without a release. In a kernel with a
/// fence it reports nothing, because the fence may order the accesses instead.
fn check_memory_order<'k>(
    cx: &RuleContext<'k>,
    lock: &LockLoop,
    pointers: &Pointers,
    found: &mut Findings<'k>,
) {
    let is_fence = |op: &super::OpSite| {
        let fence = |s: &SyncOp| {
            matches!(
                s,
                SyncOp::Fence(
                    FenceKind::AcqRel(_)
                        | FenceKind::Acquire(_)
                        | FenceKind::Release(_)
                        | FenceKind::Sc(_)
                )
            )
        };
        op.facts.syncs.iter().any(fence)
    };
    if cx.ops.iter().any(is_fence) {
        return;
    }
    for op in &cx.ops {
        let (at, order, takes) = match op.op {
            Op::Atomic(o) if op.id == lock.op => (o.at, o.order, true),
            Op::StrongStore(o) => (o.at, o.order, false),
            _ => continue,
        };
        let MemoryAddress::Global { addr, offset } = at else {
            continue;
        };
        let same = pointers.word(addr, offset) == Some(lock.word);
        let is_ordered = match takes {
            true => order.sem.acquires(),
            false => order.sem.releases(),
        };
        if !same || is_ordered {
            continue;
        }
        let (verb, order) = match takes {
            true => ("takes", "acquire"),
            false => ("frees", "release"),
        };
        let text = Message::new(format!(
            "`{}` {verb} {} without {order} semantics",
            op.op.name(),
            word_name(cx, lock.word)
        ))
        .title(match takes {
            true => "missing acquire",
            false => "missing release",
        })
        .label(format!("{verb} the lock here"))
        .cause("nothing orders the accesses that the lock guards");
        found.report(&LOCKS, op.loc(), op.site.role, text);
        found.help(format!("use `MemoryOrder::{order}(Scope::Gpu)`"));
    }
}

/// A loop that takes a lock.
struct LockLoop {
    op: usize,
    loop_id: usize,
    word: GlobalWord,
}

/// Returns the lock that a polling loop takes, if the poll is an exchange or a compare-and-swap of
/// constants.
fn lock(cx: &RuleContext, poll: &Poll, pointers: &Pointers) -> Option<LockLoop> {
    let Op::Atomic(o) = cx.ops[poll.op].op else {
        return None;
    };
    let values = BoundsQuery::new(cx, &|_| None);
    let is_constant = |x| values.bounds(x, o.ty).single().is_some();
    let is_swap = matches!(o.op, AtomicOp::Exch | AtomicOp::Cas);
    let has_constants = o.values.iter().copied().chain(o.compare).all(is_constant);
    Some(LockLoop {
        op: poll.op,
        loop_id: poll.loop_id,
        word: pointers.word(poll.addr, poll.offset)?,
    })
    .filter(|_| is_swap && has_constants)
}

fn param_name<'k>(cx: &RuleContext<'k>, word: GlobalWord) -> &'k str {
    &cx.kernel.param(word.param).name
}

fn word_name(cx: &RuleContext, word: GlobalWord) -> String {
    match word.offset() {
        Some(0) | None => format!("lock `{}`", param_name(cx, word)),
        Some(bytes) => format!("lock `{} + {bytes} bytes`", param_name(cx, word)),
    }
}

/// The locks that a thread certainly holds, each with the op that took it.
type HeldLocks = BTreeMap<usize, usize>;

/// A lock that is taken while another is held.
struct Edge {
    from: usize,
    to: usize,
    /// The op that took the held lock.
    since: usize,
    /// The op that takes the other lock.
    at: usize,
    /// All held locks.
    held: BTreeSet<usize>,
}

struct LockOrder<'a, 'k> {
    cx: &'a RuleContext<'k>,
    pointers: &'a Pointers,
    taken: &'a [LockLoop],
    edges: Vec<Edge>,
}

impl LockOrder<'_, '_> {
    /// Returns the index of the lock at a word; all loops that take it share the index.
    fn lock_index(&self, word: GlobalWord) -> Option<usize> {
        let same = |t: &LockLoop| t.word == word && word.offset().is_some();
        self.taken.iter().position(same)
    }

    fn walk(&mut self, nodes: &[Node], held: &mut HeldLocks) {
        for node in nodes {
            match node {
                Node::Op(id) => self.free_locks(*id, held),
                Node::If { arms, .. } => {
                    let mut other = held.clone();
                    self.walk(&arms[0], held);
                    self.walk(&arms[1], &mut other);
                    held.retain(|lock, _| other.contains_key(lock));
                }
                // `elect` picks the same lane every time.
                Node::Elect(body) => self.walk(body, held),
                Node::Loop(id, head, body) => {
                    let mut inside = held.clone();
                    match self.cx.code.loops[*id].kind {
                        LoopKind::While { .. } => {
                            self.walk(head, held);
                            inside.clone_from(held);
                            self.walk(body, &mut inside);
                            held.retain(|lock, _| inside.contains_key(lock));
                            self.take_locks(*id, held);
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

    /// Adds the locks that a loop has taken when it ends, and their orders.
    fn take_locks(&mut self, id: usize, held: &mut HeldLocks) {
        let taken = self.taken;
        for lock in taken.iter().filter(|t| t.loop_id == id) {
            let Some(to) = self.lock_index(lock.word) else {
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

    /// Removes the locks that an op may free by its writes.
    fn free_locks(&mut self, id: usize, held: &mut HeldLocks) {
        let op = &self.cx.ops[id];
        if held.is_empty() || self.taken.iter().any(|t| t.op == id) {
            return;
        }
        for t in op.writes() {
            let word = match t.memory {
                MemoryRegion::PerLane(MemoryAddress::Global { addr, offset }, _) => {
                    self.pointers.word(addr, offset)
                }
                MemoryRegion::Global(addr, _) => self.pointers.word(addr, 0),
                _ => continue,
            };
            let taken = self.taken;
            // A write to an unknown address may free any lock.
            held.retain(|lock, _| !word.is_none_or(|s| taken[*lock].word.may_equal(s)));
        }
    }
}

/// Returns a cycle of orders, if no common lock prevents it.
fn cycle(edges: &[Edge]) -> Option<Vec<&Edge>> {
    for (i, first) in edges.iter().enumerate() {
        let mut path = vec![first];
        if first.from == first.to || extend_to_cycle(edges, &mut path, i) {
            return Some(path);
        }
    }
    None
}

/// Extends a path of orders to a cycle. The search already tried the edges before `least`.
fn extend_to_cycle<'e>(edges: &'e [Edge], path: &mut Vec<&'e Edge>, least: usize) -> bool {
    let (start, end) = (path[0].from, path[path.len() - 1].to);
    for edge in edges[least..].iter().filter(|e| e.from == end) {
        // Threads that hold a common lock exclude each other.
        let may_overlap = |e: &&Edge| e.held.is_disjoint(&edge.held);
        if path.iter().any(|e| e.to == edge.to) || !path.iter().all(may_overlap) {
            continue;
        }
        path.push(edge);
        if edge.to == start || extend_to_cycle(edges, path, least) {
            return true;
        }
        path.pop();
    }
    false
}
