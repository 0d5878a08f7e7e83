//! R18, flags between CTAs that no thread can set.
//!
//! Every CTA runs the same program, so a flag is set only if some thread reaches a statement that
//! sets it. The analysis runs all roles as far as they can get, first with all flags at zero. It
//! passes a polling loop once a reachable statement may have written a value that ends the loop,
//! and a barrier once all its participants reach it. A loop that is reached and never passed hangs:
//! no statement sets its flag, or each such statement is after such a wait itself, in every CTA.

use super::bounds::{Bounds, BoundsQuery};
use super::control_flow::{Code, Def, LoopKind, Node};
use super::divergence::Divergence;
use super::global_words::{GlobalWord, Pointers};
use super::poll::Poll;
use super::{OpSite, RuleContext};
use crate::codes;
use crate::diagnostic::{Findings, Message, Rule};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use warpline_ir::ops::atomic::AtomicOp;
use warpline_ir::{
    Completion, MemoryAddress, MemoryRegion, NamedId, Op, Operand, RegId, SyncOp, Type,
};

pub(super) const RAISED: Rule = codes::R18_RAISED;
pub(super) const CYCLE: Rule = codes::R18_CYCLE;

/// Reports polling loops that wait forever.
pub(super) fn check<'k>(
    cx: &RuleContext<'k>,
    polls: &[Poll],
    pointers: &Pointers,
    found: &mut Findings<'k>,
) {
    if polls.is_empty() {
        return;
    }
    let mut analysis = ProgressAnalysis::new(cx, polls, pointers);
    analysis.run();
    let stuck: Vec<_> = analysis.stuck.iter().copied().collect();
    let poll_of = |id: usize| {
        polls
            .iter()
            .find(|p| p.loop_id == id && analysis.word_of.contains_key(&p.op))
    };
    let stuck: Vec<_> = stuck.into_iter().filter_map(poll_of).collect();
    let has_setter = |p: &&&Poll| !analysis.setters(p.op).is_empty();
    // A flag that no statement sets blocks everything after its wait, so only it is reported.
    let has_unset_flag = stuck.iter().any(|p| !has_setter(&p));
    for poll in stuck.iter().filter(|p| !(has_unset_flag && has_setter(p))) {
        let op = &cx.ops[poll.op];
        let name = analysis.name(poll.op);
        let setters = analysis.setters(poll.op);
        match setters.first() {
            None => {
                let text = Message::new(format!(
                    "this loop waits for a word of `{name}` that no statement of the kernel sets to a value that ends the loop"
                ))
                .label("waits forever here")
                .cause("the word is zero at launch");
                found.report(&RAISED, op.loc(), op.site.role, text);
                if let Some(param) = analysis.word(poll.op).map(|s| cx.kernel.param(s.param)) {
                    found.label("the parameter is declared here", param.loc, None);
                }
                found.help(format!(
                    "set the flag where the data is ready, for example with `{name}.signal(i)`, or remove the wait"
                ));
            }
            Some(&setter) => {
                let text = Message::new(format!(
                    "every CTA waits for a flag of `{name}` before any CTA can set one"
                ))
                .label("waits forever here");
                found.report(&CYCLE, op.loc(), op.site.role, text);
                let setter = &cx.ops[setter];
                found.label(
                    "sets the flag here, after the wait in every CTA",
                    setter.loc(),
                    setter.site.role,
                );
            }
        }
    }
}

/// The progress of the threads of a role.
#[derive(Clone)]
struct Progress {
    blocked: BlockedThreads,
    /// The results of both arms of a divergent branch, by the condition.
    branch_results: BTreeMap<String, [BlockedThreads; 2]>,
}

/// The threads of a role that wait forever.
#[derive(Clone, Copy, PartialEq)]
struct BlockedThreads {
    /// Does any thread continue?
    alive: bool,
    /// Is a lane of every warp blocked?
    lane: bool,
    /// Is a thread of the role blocked?
    thread: bool,
    /// Is the lane that `elect` picks blocked?
    elected: bool,
}

impl BlockedThreads {
    const START: Self = Self {
        alive: true,
        lane: false,
        thread: false,
        elected: false,
    };

    /// Joins two paths between which the launch or data decides for all threads.
    fn join_paths(self, other: Self) -> Self {
        match (self.alive, other.alive) {
            (true, true) => Self {
                alive: true,
                lane: self.lane && other.lane,
                thread: self.thread && other.thread,
                elected: self.elected && other.elected,
            },
            (true, false) => self,
            _ => other,
        }
    }

    /// Joins two arms that different threads take, and different lanes of each warp if `lanes`.
    fn join_threads(self, other: Self, lanes: bool) -> Self {
        let one_stopped = self.alive != other.alive;
        Self {
            alive: self.alive || other.alive,
            lane: self.lane && other.lane || lanes && (one_stopped || self.lane || other.lane),
            thread: one_stopped || self.thread || other.thread,
            elected: self.elected && other.elected,
        }
    }

    /// Adds the threads that were blocked before.
    fn with_blocked_before(self, before: Self) -> Self {
        Self {
            alive: self.alive && before.alive,
            lane: self.lane || before.lane,
            thread: self.thread || before.thread,
            elected: self.elected || before.elected,
        }
    }
}

impl Progress {
    fn stop(mut self) -> Self {
        self.blocked.alive = false;
        self
    }

    fn join_paths(self, other: Self) -> Self {
        let mut branch_results = self.branch_results;
        branch_results.retain(|key, blocked| other.branch_results.get(key) == Some(blocked));
        Self {
            blocked: self.blocked.join_paths(other.blocked),
            branch_results,
        }
    }
}

/// Roles that arrive at a named barrier, each with its number of threads.
type NamedArrivals = BTreeMap<usize, u32>;

struct ProgressAnalysis<'a, 'k> {
    cx: &'a RuleContext<'k>,
    /// The words that loops wait for.
    words: Vec<GlobalWord>,
    /// By op that reads a word: the index of the word.
    word_of: HashMap<usize, usize>,
    /// By op that may write words: the index of each word, and the values.
    flag_writes: HashMap<usize, Vec<(usize, Bounds)>>,
    /// The loops that wait for a word.
    poll_loops: BTreeSet<usize>,

    /// The possible values of each word.
    value: Vec<Bounds>,
    /// By array of mbarriers: may a phase complete?
    arrived: Vec<bool>,
    /// By role: does it reach a barrier of the CTA, or the end of its body?
    at_cta_barrier: Vec<bool>,
    named_arrivals: BTreeMap<u32, NamedArrivals>,
    /// The loops that are reached and not passed.
    stuck: BTreeSet<usize>,
    changed: bool,
}

impl<'a, 'k> ProgressAnalysis<'a, 'k> {
    fn new(cx: &'a RuleContext<'k>, polls: &[Poll], pointers: &Pointers) -> Self {
        let mut words: Vec<GlobalWord> = Vec::new();
        let mut word_of = HashMap::new();
        for poll in polls {
            let Some(word) = pointers.word(poll.addr, poll.offset) else {
                continue;
            };
            let index = words.iter().position(|w| *w == word).unwrap_or(words.len());
            if index == words.len() {
                words.push(word);
            }
            word_of.insert(poll.op, index);
        }
        // The word may also be read before the loop.
        for op in &cx.ops {
            let address = match op.op {
                Op::StrongLoad(o) => o.at,
                Op::Load(o) => o.at,
                _ => continue,
            };
            if let MemoryAddress::Global { addr, offset } = address
                && let Some(word) = pointers.word(addr, offset)
                && let Some(index) = words.iter().position(|w| *w == word)
            {
                word_of.insert(op.id, index);
            }
        }
        let mut flag_writes: HashMap<usize, Vec<(usize, Bounds)>> = HashMap::new();
        for op in &cx.ops {
            for (word, value) in writes(cx, op, pointers) {
                let may_write = |w: &GlobalWord| word.is_none_or(|s| w.may_equal(s));
                let written = words.iter().enumerate().filter(|(_, w)| may_write(w));
                let written = written.map(|(i, _)| (i, value));
                flag_writes.entry(op.id).or_default().extend(written);
            }
        }
        let kernel = cx.kernel;
        Self {
            cx,
            value: vec![Bounds::ZERO; words.len()],
            words,
            word_of,
            flag_writes,
            poll_loops: polls.iter().map(|p| p.loop_id).collect(),
            arrived: vec![false; kernel.barriers.len()],
            at_cta_barrier: vec![false; kernel.roles.len()],
            named_arrivals: BTreeMap::new(),
            stuck: BTreeSet::new(),
            changed: false,
        }
    }

    fn run(&mut self) {
        let code: &Code = &self.cx.code;
        loop {
            self.changed = false;
            self.stuck.clear();
            for role in 0..self.cx.kernel.roles.len() {
                let mut progress = Progress {
                    blocked: BlockedThreads::START,
                    branch_results: BTreeMap::new(),
                };
                for part in code.role(role) {
                    progress = self.walk(part, progress, role);
                }
                if progress.blocked.alive {
                    self.reach_cta_barrier(role);
                }
            }
            if !self.changed {
                break;
            }
        }
    }

    /// Returns the ops that set the word of an op to a value other than zero.
    fn setters(&self, op: usize) -> Vec<usize> {
        let index = self.word_of.get(&op);
        let sets = |w: &[(usize, Bounds)]| w.iter().any(|(i, b)| Some(i) == index && b.most > 0);
        let mut all: Vec<_> = (self.flag_writes.iter())
            .filter(|(_, w)| sets(w))
            .map(|(op, _)| *op)
            .collect();
        all.sort_unstable();
        // A reachable statement sets the flag, but its value does not end the wait.
        let is_set = |w: usize| self.value[w] != Bounds::ZERO;
        match index.is_some_and(|w| is_set(*w)) {
            true => Vec::new(),
            false => all,
        }
    }

    fn word(&self, op: usize) -> Option<GlobalWord> {
        self.word_of.get(&op).map(|i| self.words[*i])
    }

    fn name(&self, op: usize) -> &'k str {
        let kernel = self.cx.kernel;
        self.word(op)
            .map_or("global memory", |s| &kernel.param(s.param).name)
    }

    fn truth(&self, cond: RegId) -> Option<bool> {
        let read = |op: usize| self.word_of.get(&op).map(|i| self.value[*i]);
        BoundsQuery::new(self.cx, &read).truth(cond)
    }

    /// Marks a role that reaches a barrier of the CTA, or the end of its body.
    fn reach_cta_barrier(&mut self, role: usize) {
        self.changed |= !self.at_cta_barrier[role];
        self.at_cta_barrier[role] = true;
    }

    fn walk(&mut self, nodes: &[Node], mut progress: Progress, role: usize) -> Progress {
        for node in nodes {
            if !progress.blocked.alive {
                break;
            }
            progress = match node {
                Node::Op(id) => self.op(*id, progress, role),
                Node::If { cond, arms } => match self.truth(*cond) {
                    Some(holds) => self.walk(&arms[usize::from(!holds)], progress, role),
                    None => self.branch(*cond, arms, progress, role),
                },
                Node::Elect(body) => {
                    let (before, mut inside) = (progress.blocked, progress.clone());
                    inside.blocked.alive &= !before.elected;
                    let inside = self.walk(body, inside, role).blocked;
                    progress.blocked = inside
                        .join_threads(before, true)
                        .with_blocked_before(before);
                    progress.blocked.elected = !inside.alive;
                    progress
                }
                Node::Loop(id, head, body) => self.walk_loop(*id, [head, body], progress, role),
            };
        }
        progress
    }

    fn branch(
        &mut self,
        cond: RegId,
        arms: &[Vec<Node>; 2],
        mut progress: Progress,
        role: usize,
    ) -> Progress {
        let divergence = Divergence::of(self.cx, cond);
        if divergence == Divergence::PossiblyUniform {
            let [a, b] = [0, 1].map(|i| self.walk(&arms[i], progress.clone(), role));
            return a.join_paths(b);
        }
        let key = self.key(cond.into(), 0);
        let earlier = key
            .as_ref()
            .and_then(|k| progress.branch_results.get(k).copied());
        let arm_results = [0, 1].map(|i| {
            let mut inside = progress.clone();
            if let Some(earlier) = earlier {
                inside.blocked = inside.blocked.with_blocked_before(earlier[i]);
            }
            self.walk(&arms[i], inside, role).blocked
        });
        progress.blocked = arm_results[0]
            .join_threads(arm_results[1], divergence == Divergence::Lanes)
            .with_blocked_before(progress.blocked);
        progress.blocked.alive = arm_results[0].alive || arm_results[1].alive;
        if let Some(key) = key {
            progress.branch_results.insert(key, arm_results);
        }
        progress
    }

    fn walk_loop(
        &mut self,
        id: usize,
        [head, body]: [&[Node]; 2],
        progress: Progress,
        role: usize,
    ) -> Progress {
        match self.cx.code.loops[id].kind {
            LoopKind::For { from, to, .. } => {
                let values = BoundsQuery::new(self.cx, &|_| None);
                let [from, to] = [from, to].map(|o| values.bounds(o, Type::U32));
                let after_body = self.walk(body, progress.clone(), role);
                match from.most < to.least {
                    true => after_body,
                    false => progress.join_paths(after_body),
                }
            }
            LoopKind::While { cond } => {
                let after_head = self.walk(head, progress, role);
                if !after_head.blocked.alive {
                    return after_head;
                }
                let after_body = self.walk(body, after_head.clone(), role);
                if self.poll_loops.contains(&id) && self.truth(cond) == Some(true) {
                    self.stuck.insert(id);
                    return after_head.stop();
                }
                after_head.join_paths(after_body)
            }
        }
    }

    fn op(&mut self, id: usize, mut progress: Progress, role: usize) -> Progress {
        let cx = self.cx;
        let op = &cx.ops[id];
        if op.facts.convergence != crate::facts::Convergence::None && progress.blocked.lane {
            return progress.stop();
        }
        for (word, value) in self.flag_writes.get(&id).into_iter().flatten() {
            let joined = self.value[*word].union(*value);
            self.changed |= joined != self.value[*word];
            self.value[*word] = joined;
        }
        for t in &op.facts.touches {
            if let Completion::Bytes(bar) = t.completion {
                self.arrive(bar.bar.index());
            }
        }
        for sync in &op.facts.syncs {
            let passes = match *sync {
                SyncOp::Arrive { bar, .. } | SyncOp::CopyArrive { bar, .. } => {
                    self.arrive(bar.bar.index());
                    true
                }
                SyncOp::Wait { bar, parity, .. } => {
                    let values = BoundsQuery::new(cx, &|_| None).at_first_run_of(id);
                    self.arrived[bar.bar.index()]
                        || values.bounds(parity, Type::U32) != Bounds::ZERO
                }
                SyncOp::Warp { mask } => {
                    let is_full = mask.as_imm().is_some_and(|m| m as u32 == u32::MAX);
                    !(is_full && progress.blocked.lane)
                }
                SyncOp::Cta | SyncOp::ClusterArrive { .. } | SyncOp::ClusterWait => {
                    if !progress.blocked.thread {
                        self.reach_cta_barrier(role);
                    }
                    let is_arrival_only = matches!(sync, SyncOp::ClusterArrive { .. });
                    is_arrival_only
                        || !progress.blocked.thread && self.at_cta_barrier.iter().all(|m| *m)
                }
                SyncOp::NamedSync { bar, threads } | SyncOp::NamedReduce { bar, threads, .. } => {
                    self.arrive_named(bar, role, progress.blocked.thread) >= threads
                }
                SyncOp::NamedArrive { bar, .. } => {
                    self.arrive_named(bar, role, progress.blocked.thread);
                    true
                }
                SyncOp::Exit => {
                    self.reach_cta_barrier(role);
                    false
                }
                _ => true,
            };
            if !passes {
                progress.blocked.alive = false;
            }
        }
        progress
    }

    fn arrive(&mut self, bar: usize) {
        self.changed |= !self.arrived[bar];
        self.arrived[bar] = true;
    }

    /// Marks a role at a named barrier; returns the number of threads of all roles there.
    fn arrive_named(&mut self, bar: NamedId, role: usize, blocked: bool) -> u32 {
        let warps = self.cx.kernel.roles[role].warps - u32::from(blocked);
        let arrivals = self.named_arrivals.entry(bar.index() as u32).or_default();
        let most = arrivals.entry(role).or_default();
        self.changed |= 32 * warps > *most;
        *most = (32 * warps).max(*most);
        arrivals.values().sum()
    }

    /// Returns the expression of a value over indices and constants. Two registers with the same
    /// expression hold the same value in every thread.
    fn key(&self, o: Operand, depth: u32) -> Option<String> {
        let r = match o {
            Operand::Imm(x) => return Some(x.to_string()),
            Operand::Reg(r) => r,
        };
        let [Def::Op(id)] = self.cx.code.defs(r) else {
            return None;
        };
        let op = &self.cx.ops[*id];
        let is_pure = op.facts.touches.is_empty() && op.facts.syncs.is_empty();
        if depth > 8 || !is_pure {
            return None;
        }
        let reads: Option<Vec<String>> = (op.facts.reads.iter())
            .map(|(o, _)| self.key(*o, depth + 1))
            .collect();
        match op.op {
            Op::Mov(o) => self.key(o.src, depth + 1),
            _ => Some(format!("{}({})", op.op.name(), reads?.join(","))),
        }
    }
}

/// Returns the words of global memory that an op may write (`None`: any), with the values.
fn writes(cx: &RuleContext, op: &OpSite, pointers: &Pointers) -> Vec<(Option<GlobalWord>, Bounds)> {
    let value = written_value(cx, op.op);
    let Some(value) = value else {
        return Vec::new();
    };
    op.writes()
        .filter_map(|t| match t.memory {
            MemoryRegion::PerLane(MemoryAddress::Global { addr, offset }, _) => {
                Some(pointers.word(addr, offset))
            }
            MemoryRegion::Global(addr, _) => Some(
                pointers
                    .word(addr, 0)
                    .map(|s| GlobalWord::unknown_in(s.param)),
            ),
            _ => None,
        })
        .map(|word| (word, value))
        .collect()
}

/// Returns the values that an op may write to a word that is zero; `None` if the word stays zero.
fn written_value(cx: &RuleContext, op: &Op) -> Option<Bounds> {
    let values = BoundsQuery::new(cx, &|_| None);
    let any_of = |operands: &[Operand], ty: Type| {
        let bounds = operands.iter().map(|o| values.bounds(*o, ty));
        bounds.reduce(Bounds::union)
    };
    let updated = |op: AtomicOp, operands: &[Operand], ty: Type| {
        let operand = any_of(operands, ty)?;
        match op {
            AtomicOp::Exch | AtomicOp::Cas => Some(operand),
            AtomicOp::And | AtomicOp::Min => None,
            AtomicOp::Add | AtomicOp::Or | AtomicOp::Xor | AtomicOp::Max
                if operand == Bounds::ZERO =>
            {
                None
            }
            _ => Some(Bounds::ANY),
        }
    };
    match op {
        Op::StrongLoad(_) => None,
        Op::Store(o) => any_of(&o.src, o.ty),
        Op::StrongStore(o) => any_of(&[o.src], o.ty),
        Op::AtomicReduce(o) => updated(o.op, &o.values, o.ty),
        Op::Atomic(o) => updated(o.op, &o.values, o.ty),
        _ => Some(Bounds::ANY),
    }
}
