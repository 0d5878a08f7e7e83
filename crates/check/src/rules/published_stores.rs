//! R18, bulk stores that a flag publishes before they are complete.
//!
//! `cp.async.bulk.wait_group.read` waits until the store has read its source. The bytes are visible
//! in global memory only after `wait_group` without `.read`. A flag that is set before that
//! publishes them too early.

use super::control_flow::{LoopKind, Node};
use super::divergence::Divergence;
use super::global_words::{GlobalWord, Pointers};
use super::{OpSite, RuleContext};
use crate::codes;
use crate::diagnostic::{Findings, Message, Rule};
use std::collections::{BTreeMap, BTreeSet};
use warpline_ir::{AccessKind, Completion, MemoryAddress, MemoryRegion, Op, ParamId, SyncOp};

pub(super) const COMPLETE: Rule = codes::R18_COMPLETE;

/// The flags of a kernel: the ops that set them and the ops that read them.
pub(super) struct Flags<'a> {
    /// The ops that set a flag, with the word.
    pub(super) flag_writes: Vec<(usize, GlobalWord)>,
    /// The ops that wait for a flag or read it, with the word.
    pub(super) readers: Vec<(usize, GlobalWord)>,
    pub(super) pointers: &'a Pointers,
}

/// Reports flags that are set while a store that they publish may not be complete.
pub(super) fn check<'k>(cx: &RuleContext<'k>, flags: &Flags, found: &mut Findings<'k>) {
    let stores: BTreeMap<usize, ParamId> = (cx.ops.iter())
        .filter_map(|op| Some((op.id, stored_param(op, flags.pointers)?)))
        .collect();
    if stores.is_empty() || flags.flag_writes.is_empty() {
        return;
    }
    let mut analysis = PublishedStores {
        cx,
        flags,
        stores: &stores,
        incomplete_at: BTreeMap::new(),
        early_flags: BTreeMap::new(),
        changed: true,
    };
    while analysis.changed {
        analysis.changed = false;
        for role in 0..cx.kernel.roles.len() {
            let mut state = State::default();
            for part in cx.code.role(role) {
                analysis.walk(part, &mut state, role);
            }
        }
    }
    for (flag_write, store) in analysis.early_flags {
        let (flag_write, op) = (&cx.ops[flag_write], &cx.ops[store]);
        let name = &cx.kernel.param(stores[&store]).name;
        let text = Message::new(format!(
            "the flag is set while `{}` may still write `{name}`",
            op.op.name()
        ))
        .label("sets the flag here")
        .cause("`bulk_wait_read` waits until the store has read shared memory, not until its bytes are in global memory");
        found.report(&COMPLETE, flag_write.loc(), flag_write.site.role, text);
        found.label("issues the store here", op.loc(), op.site.role);
    }
}

/// Returns the parameter whose memory a bulk store writes.
fn stored_param(op: &OpSite, pointers: &Pointers) -> Option<ParamId> {
    op.facts.touches.iter().find_map(|t| {
        let is_bulk_store = t.completion == Completion::BulkGroup && t.access != AccessKind::Read;
        match t.memory {
            MemoryRegion::Global(addr, _) if is_bulk_store => {
                pointers.word(addr, 0).map(|s| s.param)
            }
            MemoryRegion::Tensor(param) if is_bulk_store => Some(param),
            _ => None,
        }
    })
}

/// Stores that may not be complete.
#[derive(Clone, Default, PartialEq)]
struct State {
    /// Stores of this thread, with the least number of groups committed since. The next commit puts a
    /// store of age 0 into a group, so no wait covers it yet.
    own: BTreeMap<usize, u32>,
    /// Stores of other roles that this role acquired at a barrier.
    acquired: BTreeSet<usize>,
}

impl State {
    /// Joins two alternative paths.
    fn join_paths(&mut self, other: &Self) {
        for (&store, &age) in &other.own {
            let own = self.own.entry(store).or_insert(age);
            *own = age.min(*own);
        }
        self.acquired.extend(&other.acquired);
    }

    /// Joins two arms of a branch that different threads take. A wait in one arm counts as a wait
    /// of the thread that issued the store.
    fn join_threads(&mut self, other: &Self, before: &Self) {
        let waited = |s: &usize| {
            let missing = |x: &Self| !x.own.contains_key(s);
            before.own.contains_key(s) && (missing(self) || missing(other))
        };
        let complete: Vec<usize> = before.own.keys().copied().filter(waited).collect();
        self.join_paths(other);
        complete.iter().for_each(|s| {
            self.own.remove(s);
        });
    }
}

/// The barriers by which roles synchronize.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Barrier {
    Mbarrier(usize),
    Named(usize),
    Cta,
}

struct PublishedStores<'a, 'k> {
    cx: &'a RuleContext<'k>,
    flags: &'a Flags<'a>,
    stores: &'a BTreeMap<usize, ParamId>,
    /// By barrier and arriving role: the stores that may be incomplete then.
    incomplete_at: BTreeMap<(Barrier, usize), BTreeSet<usize>>,
    /// Flag writes, each with a store that it publishes too early.
    early_flags: BTreeMap<usize, usize>,
    changed: bool,
}

impl PublishedStores<'_, '_> {
    fn walk(&mut self, nodes: &[Node], state: &mut State, role: usize) {
        for node in nodes {
            match node {
                Node::Op(id) => self.op(*id, state, role),
                Node::If { cond, arms } => {
                    let (before, mut other) = (state.clone(), state.clone());
                    self.walk(&arms[0], state, role);
                    self.walk(&arms[1], &mut other, role);
                    match Divergence::of(self.cx, *cond) {
                        Divergence::PossiblyUniform => state.join_paths(&other),
                        _ => state.join_threads(&other, &before),
                    }
                }
                Node::Elect(body) => {
                    let before = state.clone();
                    self.walk(body, state, role);
                    state.join_threads(&before, &before);
                }
                Node::Loop(id, head, body) => {
                    let is_for = matches!(self.cx.code.loops[*id].kind, LoopKind::For { .. });
                    // Terminates, because ages only fall and stores are only added.
                    loop {
                        let before = state.clone();
                        let mut inside = state.clone();
                        self.walk(head, &mut inside, role);
                        let after_head = inside.clone();
                        self.walk(body, &mut inside, role);
                        state.join_paths(&inside);
                        if *state == before {
                            if !is_for {
                                *state = after_head;
                            }
                            break;
                        }
                    }
                }
            }
        }
    }

    fn op(&mut self, id: usize, state: &mut State, role: usize) {
        let cx = self.cx;
        let op = &cx.ops[id];
        if let Some(&(_, word)) = self.flags.flag_writes.iter().find(|r| r.0 == id) {
            let incomplete = state.own.keys().chain(&state.acquired);
            let published = incomplete.copied().find(|s| self.is_read_after(*s, word));
            if let Some(store) = published {
                self.early_flags.entry(id).or_insert(store);
            }
        }
        if self.stores.contains_key(&id) {
            state.own.insert(id, 0);
        }
        for sync in &op.facts.syncs {
            match *sync {
                SyncOp::BulkCommit => state.own.values_mut().for_each(|age| {
                    *age = (*age + 1).min(1 << 16);
                }),
                SyncOp::BulkWait {
                    pending,
                    read: false,
                } => state.own.retain(|_, age| *age == 0 || *age <= pending),
                SyncOp::Arrive { bar, .. } => {
                    self.arrive(Barrier::Mbarrier(bar.bar.index()), state, role);
                }
                SyncOp::Wait { bar, .. } | SyncOp::Test { bar, .. } => {
                    self.acquire(Barrier::Mbarrier(bar.bar.index()), state, role);
                }
                SyncOp::NamedArrive { bar, .. } => {
                    self.arrive(Barrier::Named(bar.index()), state, role);
                }
                SyncOp::NamedSync { bar, .. } | SyncOp::NamedReduce { bar, .. } => {
                    self.arrive(Barrier::Named(bar.index()), state, role);
                    self.acquire(Barrier::Named(bar.index()), state, role);
                }
                SyncOp::Cta => {
                    self.arrive(Barrier::Cta, state, role);
                    self.acquire(Barrier::Cta, state, role);
                }
                _ => {}
            }
        }
    }

    fn arrive(&mut self, at: Barrier, state: &State, role: usize) {
        let incomplete = self.incomplete_at.entry((at, role)).or_default();
        let before = incomplete.len();
        incomplete.extend(state.own.keys());
        self.changed |= incomplete.len() != before;
    }

    /// Acquires the stores of other roles at a barrier.
    fn acquire(&mut self, at: Barrier, state: &mut State, role: usize) {
        let others = self
            .incomplete_at
            .iter()
            .filter(|((b, r), _)| *b == at && *r != role);
        for ((_, of), incomplete) in others {
            let issuer = |s: &usize| self.cx.ops[*s].site.role.map(|r| r.index());
            state
                .acquired
                .retain(|s| issuer(s) != Some(*of) || incomplete.contains(s));
            state.acquired.extend(incomplete);
        }
    }

    /// May a thread read the stored bytes after it has read the flag?
    fn is_read_after(&self, store: usize, word: GlobalWord) -> bool {
        let param = self.stores[&store];
        let reads = self.cx.ops.iter().filter(|op| {
            let is_flag = self.flags.readers.iter().any(|r| r.0 == op.id);
            !is_flag && reads(op, param, self.flags.pointers)
        });
        let readers = self.flags.readers.iter().filter(|r| r.1.may_equal(word));
        let role = |op: usize| self.cx.ops[op].site.role;
        let loops = &self.cx.code.loops;
        let share_loop = |a: usize, b: usize| {
            loops
                .iter()
                .any(|l| l.ops.contains(&a) && l.ops.contains(&b))
        };
        let may_follow = |flag: usize, read: usize| {
            role(flag) != role(read) || read > flag || share_loop(flag, read)
        };
        let readers: Vec<usize> = readers.map(|r| r.0).collect();
        let mut reads = reads.map(|op| op.id);
        reads.any(|read| readers.iter().any(|flag| may_follow(*flag, read)))
    }
}

/// Does an op read the memory of a parameter?
fn reads(op: &OpSite, param: ParamId, pointers: &Pointers) -> bool {
    let is_store = matches!(op.op, Op::StrongStore(_));
    op.facts.touches.iter().any(|t| {
        let accessed = match t.memory {
            MemoryRegion::PerLane(MemoryAddress::Global { addr, .. }, _)
            | MemoryRegion::Global(addr, _) => pointers.word(addr, 0).map(|s| s.param),
            MemoryRegion::Tensor(p) => Some(p),
            _ => None,
        };
        t.access != AccessKind::Write
            && !is_store
            && accessed == Some(param)
            && t.completion != Completion::BulkGroup
    })
}
