//! R18, bulk stores that are published before they are complete.
//!
//! `cp.async.bulk.wait_group.read` says that the store has read its source.
//! The bytes are in global memory for others only behind `wait_group` without
//! `.read`: a flag that is raised before says too early that they are there.

use super::code::{LoopKind, Node};
use super::parts::Parts;
use super::pointers::{Pointers, Spot};
use super::{Case, OpSite};
use crate::refusal::{Findings, Rule};
use std::collections::{BTreeMap, BTreeSet};
use warpline_ir::{Access, At, Completion, Memory, Op, ParamId, Sync};

pub(super) const COMPLETE: Rule = Rule {
    code: "R18.complete",
    holds: "a flag that publishes a bulk store is raised behind a wait for the completion of the store, not only for its reads",
};

/// The flags of a kernel: what raises them, and what looks at them.
pub(super) struct Flags<'a> {
    /// By op that raises one: where.
    pub(super) raises: Vec<(usize, Spot)>,
    /// Ops that wait for one, or look at it, and where.
    pub(super) readers: Vec<(usize, Spot)>,
    pub(super) pointers: &'a Pointers,
}

/// Refuses flags that are raised while a store they publish may not be complete.
pub(super) fn judge<'k>(case: &Case<'k>, flags: &Flags, found: &mut Findings<'k>) {
    let stores: BTreeMap<usize, ParamId> = (case.ops.iter())
        .filter_map(|op| Some((op.id, stored(op, flags.pointers)?)))
        .collect();
    if stores.is_empty() || flags.raises.is_empty() {
        return;
    }
    let mut all = Published {
        case,
        flags,
        stores: &stores,
        sites: BTreeMap::new(),
        broken: BTreeMap::new(),
        changed: true,
    };
    while all.changed {
        all.changed = false;
        for role in 0..case.kernel.roles.len() {
            let mut state = State::default();
            for part in case.code.role(role) {
                all.walk(part, &mut state, role);
            }
        }
    }
    for (raise, store) in all.broken {
        let (raise, op) = (&case.ops[raise], &case.ops[store]);
        let name = &case.kernel.param(stores[&store]).name;
        let text = format!(
            "store published before its completion: the flag is raised while {} may still write {name}, because `wait_group.read` waits for the reads of shared memory only",
            op.op.name()
        );
        found.refuse(&COMPLETE, raise.loc(), raise.site.role, text);
        found.beside("the store is issued here", op.loc(), op.site.role);
        found.help("call `bulk_wait(0)` (without `_read`) in the thread that issued the store, before the flag is raised");
    }
}

/// The parameter behind which a bulk store writes.
fn stored(op: &OpSite, pointers: &Pointers) -> Option<ParamId> {
    op.facts.touches.iter().find_map(|t| {
        let bulk = t.completion == Completion::BulkGroup && t.access != Access::Read;
        match t.memory {
            Memory::Global(addr, _) if bulk => pointers.at(addr, 0).map(|s| s.param),
            Memory::Tensor(param) if bulk => Some(param),
            _ => None,
        }
    })
}

/// Stores that may not be complete.
#[derive(Clone, Default, PartialEq)]
struct State {
    /// Of this thread: with the groups that were closed since, at least.
    own: BTreeMap<usize, u32>,
    /// Of other roles, which this one learnt of at a barrier.
    heard: BTreeSet<usize>,
}

impl State {
    /// One of two ways.
    fn either(&mut self, other: &Self) {
        for (&store, &age) in &other.own {
            let own = self.own.entry(store).or_insert(age);
            *own = age.min(*own);
        }
        self.heard.extend(&other.heard);
    }

    /// Both, by different threads: whoever issued a store has waited for it.
    fn both(&mut self, other: &Self, before: &Self) {
        let waited = |s: &usize| {
            let missing = |x: &Self| !x.own.contains_key(s);
            before.own.contains_key(s) && (missing(self) || missing(other))
        };
        let gone: Vec<usize> = before.own.keys().copied().filter(waited).collect();
        self.either(other);
        gone.iter().for_each(|s| {
            self.own.remove(s);
        });
    }
}

/// Barriers by which roles learn of each other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Barrier {
    Mbarrier(usize),
    Named(usize),
    Cta,
}

struct Published<'a, 'k> {
    case: &'a Case<'k>,
    flags: &'a Flags<'a>,
    stores: &'a BTreeMap<usize, ParamId>,
    /// By barrier and role that arrives there: stores that may be open then.
    sites: BTreeMap<(Barrier, usize), BTreeSet<usize>>,
    /// Raises, each with a store that it publishes too early.
    broken: BTreeMap<usize, usize>,
    changed: bool,
}

impl Published<'_, '_> {
    fn walk(&mut self, nodes: &[Node], state: &mut State, role: usize) {
        for node in nodes {
            match node {
                Node::Op(id) => self.op(*id, state, role),
                Node::If { cond, arms } => {
                    let (before, mut other) = (state.clone(), state.clone());
                    self.walk(&arms[0], state, role);
                    self.walk(&arms[1], &mut other, role);
                    match Parts::of(self.case, *cond) {
                        Parts::Elsewhere => state.either(&other),
                        _ => state.both(&other, &before),
                    }
                }
                Node::Elect(body) => {
                    let before = state.clone();
                    self.walk(body, state, role);
                    state.both(&before, &before);
                }
                Node::Loop(id, head, body) => {
                    let is_for = matches!(self.case.code.loops[*id].kind, LoopKind::For { .. });
                    // Ages only fall, and stores only come.
                    loop {
                        let before = state.clone();
                        let mut inside = state.clone();
                        self.walk(head, &mut inside, role);
                        let left = inside.clone();
                        self.walk(body, &mut inside, role);
                        state.either(&inside);
                        if *state == before {
                            if !is_for {
                                *state = left;
                            }
                            break;
                        }
                    }
                }
            }
        }
    }

    fn op(&mut self, id: usize, state: &mut State, role: usize) {
        let case = self.case;
        let op = &case.ops[id];
        if let Some(&(_, word)) = self.flags.raises.iter().find(|r| r.0 == id) {
            let open = state.own.keys().chain(&state.heard);
            let published = open.copied().find(|s| self.is_read(*s, word));
            if let Some(store) = published {
                self.broken.entry(id).or_insert(store);
            }
        }
        if self.stores.contains_key(&id) {
            state.own.insert(id, 0);
        }
        for sync in &op.facts.syncs {
            match *sync {
                Sync::BulkCommit => state.own.values_mut().for_each(|age| {
                    *age = (*age + 1).min(1 << 16);
                }),
                Sync::BulkWait {
                    pending,
                    read: false,
                } => state.own.retain(|_, age| *age == 0 || *age <= pending),
                Sync::Arrive { bar, .. } => {
                    self.arrive(Barrier::Mbarrier(bar.bar.index()), state, role);
                }
                Sync::Wait { bar, .. } | Sync::Test { bar, .. } => {
                    self.learn(Barrier::Mbarrier(bar.bar.index()), state, role);
                }
                Sync::NamedArrive { bar, .. } => {
                    self.arrive(Barrier::Named(bar.index()), state, role);
                }
                Sync::NamedSync { bar, .. } | Sync::NamedTally { bar, .. } => {
                    self.arrive(Barrier::Named(bar.index()), state, role);
                    self.learn(Barrier::Named(bar.index()), state, role);
                }
                Sync::Cta => {
                    self.arrive(Barrier::Cta, state, role);
                    self.learn(Barrier::Cta, state, role);
                }
                _ => {}
            }
        }
    }

    fn arrive(&mut self, at: Barrier, state: &State, role: usize) {
        let open = self.sites.entry((at, role)).or_default();
        let before = open.len();
        open.extend(state.own.keys());
        self.changed |= open.len() != before;
    }

    /// A thread learns what other roles did before they came to a barrier.
    fn learn(&mut self, at: Barrier, state: &mut State, role: usize) {
        let others = self
            .sites
            .iter()
            .filter(|((b, r), _)| *b == at && *r != role);
        for ((_, of), open) in others {
            let issuer = |s: &usize| self.case.ops[*s].site.role.map(|r| r.index());
            state
                .heard
                .retain(|s| issuer(s) != Some(*of) || open.contains(s));
            state.heard.extend(open);
        }
    }

    /// Does a thread that looks at a word go on to read the stored bytes?
    fn is_read(&self, store: usize, word: Spot) -> bool {
        let param = self.stores[&store];
        let reads = self.case.ops.iter().filter(|op| {
            let is_flag = self.flags.readers.iter().any(|r| r.0 == op.id);
            !is_flag && reads(op, param, self.flags.pointers)
        });
        let readers = self.flags.readers.iter().filter(|r| r.1.may_be(word));
        let role = |op: usize| self.case.ops[op].site.role;
        let loops = &self.case.code.loops;
        let again = |a: usize, b: usize| {
            let both = |l: &super::code::Loop| l.ops.contains(&a) && l.ops.contains(&b);
            loops.iter().any(both)
        };
        let after = |look: usize, y: usize| role(look) != role(y) || y > look || again(look, y);
        let readers: Vec<usize> = readers.map(|r| r.0).collect();
        let mut reads = reads.map(|op| op.id);
        reads.any(|y| readers.iter().any(|look| after(*look, y)))
    }
}

/// Does an op read the memory behind a parameter?
fn reads(op: &OpSite, param: ParamId, pointers: &Pointers) -> bool {
    let is_store = matches!(op.op, Op::StrongStore(_));
    op.facts.touches.iter().any(|t| {
        let of = match t.memory {
            Memory::At(At::Global { addr, .. }, _) | Memory::Global(addr, _) => {
                pointers.at(addr, 0).map(|s| s.param)
            }
            Memory::Tensor(p) => Some(p),
            _ => None,
        };
        t.access != Access::Write
            && !is_store
            && of == Some(param)
            && t.completion != Completion::BulkGroup
    })
}
