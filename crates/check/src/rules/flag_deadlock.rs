//! R18, flags between CTAs that no thread can set.
//!
//! Every CTA runs the same program, so a flag is set only if some thread reaches a statement that
//! sets it. The analysis runs all roles as far as they can get, first with all flags at zero. It
//! passes a polling loop once a reachable statement may have written a value that ends the loop, and
//! a barrier once all its participants reach it. A loop that is reached and never passed hangs: no
//! statement sets its flag, or each such statement is after such a wait itself, in every CTA.

use super::bounds::{Bounds, Values};
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
    AccessKind, Completion, MemoryAddress, MemoryRegion, NamedId, Op, Operand, RegId, SyncOp, Type,
};

pub(super) const RAISED: Rule = codes::R18_RAISED;
pub(super) const CYCLE: Rule = codes::R18_CYCLE;

/// Reports polling loops that wait forever.
pub(super) fn judge<'k>(
    cx: &RuleContext<'k>,
    polls: &[Poll],
    pointers: &Pointers,
    found: &mut Findings<'k>,
) {
    if polls.is_empty() {
        return;
    }
    let mut stall = Stall::new(cx, polls, pointers);
    stall.run();
    let stuck: Vec<_> = stall.stuck.iter().copied().collect();
    let of = |id: usize| {
        polls
            .iter()
            .find(|p| p.spins == id && stall.class.contains_key(&p.op))
    };
    let stuck: Vec<_> = stuck.into_iter().filter_map(of).collect();
    let is_raised = |p: &&&Poll| !stall.raisers(p.op).is_empty();
    // A flag that no statement sets blocks everything after its wait, so only it is reported.
    let lone = stuck.iter().any(|p| !is_raised(&p));
    for poll in stuck.iter().filter(|p| !(lone && is_raised(p))) {
        let op = &cx.ops[poll.op];
        let name = stall.name(poll.op);
        let raisers = stall.raisers(poll.op);
        match raisers.first() {
            None => {
                let text = Message::new(format!(
                    "this loop waits for a word of `{name}` that no statement of the kernel sets to a value that ends the loop"
                ))
                .label("waits forever here")
                .cause("the word is zero at launch");
                found.report(&RAISED, op.loc(), op.site.role, text);
                if let Some(param) = stall.spot(poll.op).map(|s| cx.kernel.param(s.param)) {
                    found.label("the parameter is declared here", param.loc, None);
                }
                found.help(format!(
                    "set the flag where the data is ready, for example with `{name}.signal(i)`, or remove the wait"
                ));
            }
            Some(&raise) => {
                let text = Message::new(format!(
                    "every CTA waits for a flag of `{name}` before any CTA can set one"
                ))
                .label("waits forever here");
                found.report(&CYCLE, op.loc(), op.site.role, text);
                let raise = &cx.ops[raise];
                found.label(
                    "sets the flag here, after the wait in every CTA",
                    raise.loc(),
                    raise.site.role,
                );
            }
        }
    }
}

/// The progress of the threads of a role.
#[derive(Clone)]
struct Progress {
    now: Held,
    /// The results of both arms of a divergent branch, by the condition.
    past: BTreeMap<String, [Held; 2]>,
}

/// The threads that wait forever.
#[derive(Clone, Copy, PartialEq)]
struct Held {
    /// Does any thread continue?
    alive: bool,
    /// Is a lane of every warp blocked?
    lane: bool,
    /// Is a thread of the role blocked?
    thread: bool,
    /// Is the lane that `elect` picks blocked?
    elected: bool,
}

impl Held {
    const START: Self = Self {
        alive: true,
        lane: false,
        thread: false,
        elected: false,
    };

    /// Joins two alternatives that the launch or data decides.
    fn either(self, other: Self) -> Self {
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

    /// Joins two arms that different threads take; `lanes`: lanes of every warp.
    fn both(self, other: Self, lanes: bool) -> Self {
        let parted = self.alive != other.alive;
        Self {
            alive: self.alive || other.alive,
            lane: self.lane && other.lane || lanes && (parted || self.lane || other.lane),
            thread: parted || self.thread || other.thread,
            elected: self.elected && other.elected,
        }
    }

    /// Keeps threads blocked that were blocked before.
    fn behind(self, before: Self) -> Self {
        Self {
            alive: self.alive && before.alive,
            lane: self.lane || before.lane,
            thread: self.thread || before.thread,
            elected: self.elected || before.elected,
        }
    }
}

impl Progress {
    fn dead(mut self) -> Self {
        self.now.alive = false;
        self
    }

    fn either(self, other: Self) -> Self {
        let mut past = self.past;
        past.retain(|key, held| other.past.get(key) == Some(held));
        Self {
            now: self.now.either(other.now),
            past,
        }
    }
}

/// Roles that arrive at a named barrier, with their thread counts.
type Comers = BTreeMap<usize, u32>;

struct Stall<'a, 'k> {
    cx: &'a RuleContext<'k>,
    /// The words that loops wait for.
    words: Vec<GlobalWord>,
    /// By op that reads a word: the index of the word.
    class: HashMap<usize, usize>,
    /// By op that may write a word: the index of the word, and the values.
    raises: HashMap<usize, Vec<(usize, Bounds)>>,
    /// The loops that wait for a word.
    spins: BTreeSet<usize>,

    /// The possible values of each word.
    value: Vec<Bounds>,
    /// By array of mbarriers: may a phase complete?
    arrived: Vec<bool>,
    /// By role: does it reach a barrier of the CTA, or its end?
    meets: Vec<bool>,
    named: BTreeMap<u32, Comers>,
    /// The loops that are reached and not passed.
    stuck: BTreeSet<usize>,
    changed: bool,
}

impl<'a, 'k> Stall<'a, 'k> {
    fn new(cx: &'a RuleContext<'k>, polls: &[Poll], pointers: &Pointers) -> Self {
        let mut words: Vec<GlobalWord> = Vec::new();
        let mut class = HashMap::new();
        for poll in polls {
            let Some(spot) = pointers.at(poll.addr, poll.offset) else {
                continue;
            };
            let at = words.iter().position(|w| *w == spot).unwrap_or(words.len());
            if at == words.len() {
                words.push(spot);
            }
            class.insert(poll.op, at);
        }
        // The word may also be read before the loop.
        for op in &cx.ops {
            let at = match op.op {
                Op::StrongLoad(o) => o.at,
                Op::Load(o) => o.at,
                _ => continue,
            };
            if let MemoryAddress::Global { addr, offset } = at
                && let Some(spot) = pointers.at(addr, offset)
                && let Some(at) = words.iter().position(|w| *w == spot)
            {
                class.insert(op.id, at);
            }
        }
        let mut raises: HashMap<usize, Vec<(usize, Bounds)>> = HashMap::new();
        for op in &cx.ops {
            for (spot, value) in writes(cx, op, pointers) {
                let may = |w: &GlobalWord| spot.is_none_or(|s| w.may_be(s));
                let met = words.iter().enumerate().filter(|(_, w)| may(w));
                let met = met.map(|(i, _)| (i, value));
                raises.entry(op.id).or_default().extend(met);
            }
        }
        let kernel = cx.kernel;
        Self {
            cx,
            value: vec![Bounds::ZERO; words.len()],
            words,
            class,
            raises,
            spins: polls.iter().map(|p| p.spins).collect(),
            arrived: vec![false; kernel.barriers.len()],
            meets: vec![false; kernel.roles.len()],
            named: BTreeMap::new(),
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
                let mut way = Progress {
                    now: Held::START,
                    past: BTreeMap::new(),
                };
                for part in code.role(role) {
                    way = self.walk(part, way, role);
                }
                if way.now.alive {
                    self.come(role);
                }
            }
            if !self.changed {
                break;
            }
        }
    }

    /// Returns the ops that set the word of an op to a value other than zero.
    fn raisers(&self, op: usize) -> Vec<usize> {
        let at = self.class.get(&op);
        let raises = |w: &[(usize, Bounds)]| w.iter().any(|(i, b)| Some(i) == at && b.most > 0);
        let mut all: Vec<_> = (self.raises.iter())
            .filter(|(_, w)| raises(w))
            .map(|(op, _)| *op)
            .collect();
        all.sort_unstable();
        // The value that a reachable statement writes does not end the wait.
        let ran = |w: usize| self.value[w] != Bounds::ZERO;
        match at.is_some_and(|w| ran(*w)) {
            true => Vec::new(),
            false => all,
        }
    }

    fn spot(&self, op: usize) -> Option<GlobalWord> {
        self.class.get(&op).map(|i| self.words[*i])
    }

    fn name(&self, op: usize) -> &'k str {
        let kernel = self.cx.kernel;
        self.spot(op)
            .map_or("global memory", |s| &kernel.param(s.param).name)
    }

    fn truth(&self, cond: RegId) -> Option<bool> {
        let read = |op: usize| self.class.get(&op).map(|i| self.value[*i]);
        Values::new(self.cx, &read).truth(cond)
    }

    /// Marks a role that reaches a barrier of the CTA, or its end.
    fn come(&mut self, role: usize) {
        self.changed |= !self.meets[role];
        self.meets[role] = true;
    }

    fn walk(&mut self, nodes: &[Node], mut way: Progress, role: usize) -> Progress {
        for node in nodes {
            if !way.now.alive {
                break;
            }
            way = match node {
                Node::Op(id) => self.op(*id, way, role),
                Node::If { cond, arms } => match self.truth(*cond) {
                    Some(holds) => self.walk(&arms[usize::from(!holds)], way, role),
                    None => self.branch(*cond, arms, way, role),
                },
                Node::Elect(body) => {
                    let (before, mut inside) = (way.now, way.clone());
                    inside.now.alive &= !before.elected;
                    let inside = self.walk(body, inside, role).now;
                    way.now = inside.both(before, true).behind(before);
                    way.now.elected = !inside.alive;
                    way
                }
                Node::Loop(id, head, body) => self.round(*id, [head, body], way, role),
            };
        }
        way
    }

    fn branch(
        &mut self,
        cond: RegId,
        arms: &[Vec<Node>; 2],
        mut way: Progress,
        role: usize,
    ) -> Progress {
        let parts = Divergence::of(self.cx, cond);
        if parts == Divergence::CtaUniform {
            let [a, b] = [0, 1].map(|i| self.walk(&arms[i], way.clone(), role));
            return a.either(b);
        }
        let key = self.key(cond.into(), 0);
        let past = key.as_ref().and_then(|k| way.past.get(k).copied());
        let now = [0, 1].map(|i| {
            let mut inside = way.clone();
            if let Some(past) = past {
                inside.now = inside.now.behind(past[i]);
            }
            self.walk(&arms[i], inside, role).now
        });
        way.now = now[0]
            .both(now[1], parts == Divergence::Lanes)
            .behind(way.now);
        way.now.alive = now[0].alive || now[1].alive;
        if let Some(key) = key {
            way.past.insert(key, now);
        }
        way
    }

    fn round(
        &mut self,
        id: usize,
        [head, body]: [&[Node]; 2],
        way: Progress,
        role: usize,
    ) -> Progress {
        match self.cx.code.loops[id].kind {
            LoopKind::For { from, to, .. } => {
                let values = Values::new(self.cx, &|_| None);
                let [from, to] = [from, to].map(|o| values.of(o, Type::U32));
                let after = self.walk(body, way.clone(), role);
                match from.most < to.least {
                    true => after,
                    false => way.either(after),
                }
            }
            LoopKind::While { cond } => {
                let left = self.walk(head, way, role);
                if !left.now.alive {
                    return left;
                }
                let after = self.walk(body, left.clone(), role);
                if self.spins.contains(&id) && self.truth(cond) == Some(true) {
                    self.stuck.insert(id);
                    return left.dead();
                }
                left.either(after)
            }
        }
    }

    fn op(&mut self, id: usize, mut way: Progress, role: usize) -> Progress {
        let cx = self.cx;
        let op = &cx.ops[id];
        if op.facts.convergence != crate::facts::Convergence::None && way.now.lane {
            return way.dead();
        }
        for (word, value) in self.raises.get(&id).into_iter().flatten() {
            let more = self.value[*word].or(*value);
            self.changed |= more != self.value[*word];
            self.value[*word] = more;
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
                    let values = Values::new(cx, &|_| None).first_at(id);
                    self.arrived[bar.bar.index()] || values.of(parity, Type::U32) != Bounds::ZERO
                }
                SyncOp::Warp { mask } => {
                    let whole = mask.as_imm().is_some_and(|m| m as u32 == u32::MAX);
                    !(whole && way.now.lane)
                }
                SyncOp::Cta | SyncOp::ClusterArrive { .. } | SyncOp::ClusterWait => {
                    if !way.now.thread {
                        self.come(role);
                    }
                    let alone = matches!(sync, SyncOp::ClusterArrive { .. });
                    alone || !way.now.thread && self.meets.iter().all(|m| *m)
                }
                SyncOp::NamedSync { bar, threads } | SyncOp::NamedReduce { bar, threads, .. } => {
                    self.bring(bar, role, way.now.thread) >= threads
                }
                SyncOp::NamedArrive { bar, .. } => {
                    self.bring(bar, role, way.now.thread);
                    true
                }
                SyncOp::Exit => {
                    self.come(role);
                    false
                }
                _ => true,
            };
            if !passes {
                way.now.alive = false;
            }
        }
        way
    }

    fn arrive(&mut self, bar: usize) {
        self.changed |= !self.arrived[bar];
        self.arrived[bar] = true;
    }

    /// Marks a role at a named barrier; returns the threads that have arrived in all.
    fn bring(&mut self, bar: NamedId, role: usize, held: bool) -> u32 {
        let warps = self.cx.kernel.roles[role].warps - u32::from(held);
        let comers = self.named.entry(bar.index() as u32).or_default();
        let most = comers.entry(role).or_default();
        self.changed |= 32 * warps > *most;
        *most = (32 * warps).max(*most);
        comers.values().sum()
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
    let touches = op
        .facts
        .touches
        .iter()
        .filter(|t| t.access != AccessKind::Read);
    touches
        .filter_map(|t| match t.memory {
            MemoryRegion::PerLane(MemoryAddress::Global { addr, offset }, _) => {
                Some(pointers.at(addr, offset))
            }
            MemoryRegion::Global(addr, _) => {
                Some(pointers.at(addr, 0).map(|s| GlobalWord::behind(s.param)))
            }
            _ => None,
        })
        .map(|spot| (spot, value))
        .collect()
}

/// Returns the values that an op may write to zeroed memory; `None` if it does not change it.
fn written_value(cx: &RuleContext, op: &Op) -> Option<Bounds> {
    let values = Values::new(cx, &|_| None);
    let any = |of: &[Operand], ty: Type| {
        let bounds = of.iter().map(|o| values.of(*o, ty));
        bounds.reduce(Bounds::or)
    };
    let change = |op: AtomicOp, of: &[Operand], ty: Type| {
        let with = any(of, ty)?;
        match op {
            AtomicOp::Exch | AtomicOp::Cas => Some(with),
            AtomicOp::And | AtomicOp::Min => None,
            AtomicOp::Add | AtomicOp::Or | AtomicOp::Xor | AtomicOp::Max
                if with == Bounds::ZERO =>
            {
                None
            }
            _ => Some(Bounds::ANY),
        }
    };
    match op {
        Op::StrongLoad(_) => None,
        Op::Store(o) => any(&o.src, o.ty),
        Op::StrongStore(o) => any(&[o.src], o.ty),
        Op::AtomicReduce(o) => change(o.op, &o.values, o.ty),
        Op::Atomic(o) => change(o.op, &o.values, o.ty),
        _ => Some(Bounds::ANY),
    }
}
