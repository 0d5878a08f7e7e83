//! R18, synchronization of CTAs through global memory.
//!
//! A CTA waits for another one by polling a word. All CTAs must then be resident at the same time,
//! or the CTA that sets the word may never start. The setter releases and the poller acquires at
//! GPU scope. In a *claim*, a CTA learns from the result of an atomic that it is the last one and
//! takes over the data of the others. It waits for nobody, but the atomic must release and acquire
//! in the same way.

use super::claims::Claim;
use super::flag_reads::FlagRead;
use super::flow::{Dataflow, run_dataflow};
use super::global_words::{GlobalWord, Pointers};
use super::poll::Poll;
use super::{OpSite, RuleContext, flag_deadlock, locks, published_stores, scope};
use crate::bits::Bits;
use crate::codes;
use crate::diagnostic::{Findings, Message, Rule};
use std::collections::HashSet;
use warpline_ir::{MemoryAddress, MemoryOrder, Op, Operand, RoleId, Scope, SyncOp};

/// The rules of this group.
pub const RULES: &[Rule] = &[
    RESIDENT,
    flag_deadlock::RAISED,
    flag_deadlock::CYCLE,
    ACQUIRE,
    RELEASE,
    scope::SCOPE,
    locks::LOCKS,
    published_stores::COMPLETE,
];

const RESIDENT: Rule = codes::R18_RESIDENT;
const ACQUIRE: Rule = codes::R18_ACQUIRE;
const RELEASE: Rule = codes::R18_RELEASE;

pub(crate) fn check<'k>(cx: &RuleContext<'k>, found: &mut Findings<'k>) {
    let pointers = Pointers::of(cx.kernel, &cx.ops);
    let all_polls = Poll::all(cx);
    flag_deadlock::check(cx, &all_polls, &pointers, found);
    locks::check(cx, &all_polls, &pointers, found);
    let polls = Poll::loads(all_polls);
    let claims = Claim::all(cx, &pointers);
    let flag_reads = FlagRead::all(cx, &pointers, &polls);
    if !polls.is_empty() && !cx.kernel.co_resident {
        let op = &cx.ops[polls[0].op];
        let text = Message::new("this loop waits for a word that another CTA sets, and the kernel is not declared co-resident")
            .label("waits for another CTA here")
            .cause("a CTA that does not fit on the GPU starts only after another one ends, so the CTA that sets the word may never start");
        found.report(&RESIDENT, op.loc(), op.site.role, text);
    }
    let words = Words {
        polled_words: polls
            .iter()
            .filter_map(|p| pointers.word(p.addr, p.offset))
            .collect(),
        polls,
        claims,
        flag_reads,
        pointers,
    };
    published_stores::check(cx, &words.flags(cx), found);
    let mut analysis = CrossCta {
        cx,
        words: &words,
        found,
        reported: HashSet::new(),
    };
    analysis.check_polls();
    analysis.check_weak_flag_reads();
    if !words.is_empty() {
        for i in 0..cx.kernel.roles.len() {
            let steps = cx.steps(RoleId(i as u32), &mut |op| words.act(op));
            let mut state = State {
                released: false,
                unacquired: Bits::new(cx.ops.len()),
            };
            run_dataflow(&steps, &mut analysis, &mut state);
        }
    }
    scope::check(cx, &analysis.reported, analysis.found);
}

/// The part of an op that concerns flags of CTAs, with the index of the op.
enum Act {
    /// A relaxed poll.
    RelaxedPoll(usize),
    /// A write of this order to a word that CTAs wait for.
    SetFlag(usize, Option<MemoryOrder>),
    /// A relaxed load: a branch on its value leads to data that other threads wrote.
    FlagRead(usize),
    /// An atomic of this order that may claim the data of other CTAs.
    Claim(usize, MemoryOrder),
    Fence(MemoryOrder),
    /// Any other memory access or barrier.
    Other(usize),
}

/// The words by which CTAs synchronize, and the ops that read them.
struct Words {
    polls: Vec<Poll>,
    claims: Vec<Claim>,
    flag_reads: Vec<FlagRead>,
    /// The words that CTAs poll.
    polled_words: Vec<GlobalWord>,
    pointers: Pointers,
}

impl Words {
    fn is_empty(&self) -> bool {
        self.polls.is_empty() && self.claims.is_empty() && self.flag_reads.is_empty()
    }

    /// Returns the ops that set flags and the ops that read them.
    fn flags(&self, cx: &RuleContext) -> published_stores::Flags<'_> {
        let word_at = |addr, offset| self.pointers.word(addr, offset);
        let polls = self.polls.iter();
        let polls = polls.filter_map(|p| Some((p.op, word_at(p.addr, p.offset)?)));
        let claims = self.claims.iter().filter_map(|c| match cx.ops[c.op].op {
            Op::Atomic(o) => match o.at {
                MemoryAddress::Global { addr, offset } => Some((c.op, word_at(addr, offset)?)),
                MemoryAddress::Shared(_) => None,
            },
            _ => None,
        });
        let flag_reads = self.flag_reads.iter().map(|l| (l.op, l.word));
        let readers: Vec<_> = polls.chain(claims).chain(flag_reads).collect();
        let flag_writes = cx.ops.iter().filter_map(|op| {
            let address = match op.op {
                Op::StrongStore(o) => o.at,
                Op::AtomicReduce(o) => o.at,
                Op::Atomic(o) => o.at,
                Op::Store(o) if o.src.iter().any(|x| *x != Operand::Imm(0)) => o.at,
                _ => return None,
            };
            let MemoryAddress::Global { addr, offset } = address else {
                return None;
            };
            let word = word_at(addr, offset)?;
            let is_read = readers.iter().any(|r| r.1.may_equal(word));
            is_read.then_some((op.id, word))
        });
        published_stores::Flags {
            flag_writes: flag_writes.collect(),
            readers,
            pointers: &self.pointers,
        }
    }

    fn flag_read(&self, op: usize) -> Option<&FlagRead> {
        self.flag_reads.iter().find(|l| l.op == op)
    }

    fn claim(&self, op: usize) -> Option<&Claim> {
        self.claims.iter().find(|c| c.op == op)
    }

    /// May this be a word that CTAs poll?
    fn is_polled(&self, at: &MemoryAddress) -> bool {
        match *at {
            MemoryAddress::Global { addr, offset } => {
                let word = self.pointers.word(addr, offset);
                word.is_some_and(|s| self.polled_words.iter().any(|w| w.may_equal(s)))
            }
            MemoryAddress::Shared(_) => false,
        }
    }

    fn act(&self, op: &OpSite) -> Option<Act> {
        let id = op.id;
        if let Some(poll) = self.polls.iter().find(|p| p.op == id) {
            let relaxed = poll.order.filter(|o| !o.sem.acquires());
            return relaxed.map(|_| Act::RelaxedPoll(id));
        }
        if let Some(flag_read) = self.flag_read(id) {
            return Some(match flag_read.order {
                Some(_) => Act::FlagRead(id),
                None => Act::Other(id),
            });
        }
        if let Some(claim) = self.claim(id) {
            return Some(Act::Claim(id, claim.order));
        }
        match op.op {
            Op::Fence(fence) if !fence.kind.is_shared_only() => fence.kind.order().map(Act::Fence),
            Op::Fence(_) => None,
            // A plain store of zero resets the word for the next launch.
            Op::Store(o)
                if self.is_polled(&o.at) && o.src.iter().any(|x| *x != Operand::Imm(0)) =>
            {
                Some(Act::SetFlag(id, None))
            }
            Op::StrongStore(o) if self.is_polled(&o.at) => Some(Act::SetFlag(id, Some(o.order))),
            Op::AtomicReduce(o) if self.is_polled(&o.at) => Some(Act::SetFlag(id, Some(o.order))),
            Op::Atomic(o) if self.is_polled(&o.at) => Some(Act::SetFlag(id, Some(o.order))),
            _ => {
                let is_barrier = |s: &SyncOp| !matches!(s, SyncOp::Fence(_));
                let other = !op.facts.touches.is_empty() || op.facts.syncs.iter().any(is_barrier);
                other.then_some(Act::Other(id))
            }
        }
    }
}

#[derive(Clone)]
struct State {
    /// Every path to this point has a release fence, and no access after it.
    released: bool,
    /// Relaxed polls, flag reads and claims that no acquire fence follows on some path to this point.
    unacquired: Bits,
}

struct CrossCta<'a, 'k> {
    cx: &'a RuleContext<'k>,
    words: &'a Words,
    found: &'a mut Findings<'k>,
    /// Ops that were reported already.
    reported: HashSet<usize>,
}

impl Dataflow<Act> for CrossCta<'_, '_> {
    type State = State;

    fn op(&mut self, act: &Act, state: &mut State) {
        match *act {
            Act::RelaxedPoll(id) => {
                state.released = false;
                state.unacquired.insert(id);
            }
            Act::Fence(order) if order.scope >= Scope::Gpu => {
                state.released |= order.sem.releases();
                if order.sem.acquires() {
                    state.unacquired.clear();
                }
            }
            Act::Fence(_) => {}
            Act::SetFlag(id, order) => {
                self.check_flag_write(id, order, state.released);
                self.check_access(id, state);
            }
            Act::Claim(id, order) => {
                self.check_flag_write(id, Some(order), state.released);
                self.check_access(id, state);
                if !order.sem.acquires() {
                    state.unacquired.insert(id);
                }
            }
            Act::FlagRead(id) => {
                self.check_access(id, state);
                state.unacquired.insert(id);
            }
            Act::Other(id) => self.check_access(id, state),
        }
    }

    fn join(&self, state: &mut State, other: &State) -> bool {
        let lost = state.released && !other.released;
        state.released &= other.released;
        state.unacquired.add(&other.unacquired) | lost
    }
}

impl CrossCta<'_, '_> {
    /// Reports polls that no later fence can turn into an acquire.
    fn check_polls(&mut self) {
        for poll in &self.words.polls {
            let op = &self.cx.ops[poll.op];
            if poll.order.is_none_or(|o| o.scope < Scope::Gpu) {
                let text = Message::new(format!(
                    "`{}` polls a flag of another CTA without an acquire at GPU scope",
                    op.op.name()
                ))
                .label("polls the flag here")
                .cause("the data that the flag guards may be read before the flag is seen");
                self.found.report(&ACQUIRE, op.loc(), op.site.role, text);
                self.reported.insert(poll.op);
            }
        }
    }

    /// Reports plain loads of a flag whose value decides a branch to data of other threads: no fence
    /// makes such a load an acquire.
    fn check_weak_flag_reads(&mut self) {
        let words = self.words;
        for flag_read in words.flag_reads.iter().filter(|l| l.order.is_none()) {
            if self.reported.insert(flag_read.op) {
                self.report_unacquired_read(flag_read);
            }
        }
    }

    /// Reports a flag that is read once, without an acquire.
    fn report_unacquired_read(&mut self, flag_read: &FlagRead) {
        let op = &self.cx.ops[flag_read.op];
        let name = &self.cx.kernel.param(flag_read.word.param).name;
        let text = Message::new(format!(
            "`{}` reads the flag in `{name}` once without an acquire at GPU scope, and the value decides a branch to data that another thread writes before it sets the flag",
            op.op.name()
        ))
        .label("reads the flag here")
        .cause("nothing orders the access to the data after the load of the flag");
        self.found.report(&ACQUIRE, op.loc(), op.site.role, text);
        self.label(
            "accesses the data here if the flag is set",
            flag_read.after[0],
        );
        self.label(
            "accesses the data here before the flag is set",
            flag_read.before,
        );
        self.label("sets the flag here", flag_read.flag_write);
        self.found.help("load the flag with `MemoryOrder::acquire(Scope::Gpu)`, or with a relaxed load and `fence_acquire(Scope::Gpu)` after the branch");
    }

    /// Checks a write that sets a flag or updates a claim counter: it must release at GPU scope.
    fn check_flag_write(&mut self, id: usize, order: Option<MemoryOrder>, released: bool) {
        let reaches = order.is_some_and(|o| o.scope >= Scope::Gpu);
        let releases = order.is_some_and(|o| o.sem.releases());
        if reaches && (releases || released) || !self.reported.insert(id) {
            return;
        }
        let op = &self.cx.ops[id];
        let claim = self.words.claim(id);
        let what = match claim {
            Some(_) => "updates a counter by which a CTA takes over the data of others",
            None => "sets a flag that other CTAs wait for",
        };
        let text = Message::new(format!(
            "`{}` {what}, without a release at GPU scope",
            op.op.name()
        ))
        .label(match claim {
            Some(_) => "updates the counter here",
            None => "sets the flag here",
        })
        .cause("accesses before it may become visible to other CTAs after it");
        self.found.report(&RELEASE, op.loc(), op.site.role, text);
        if let Some(claim) = claim {
            self.label("accesses the data here before the update", claim.before);
            self.label(
                "the CTA that takes over accesses the data here",
                claim.after[0],
            );
        }
    }

    /// Checks an access or a barrier: an acquire fence must follow every earlier relaxed read of a
    /// flag.
    fn check_access(&mut self, id: usize, state: &mut State) {
        state.released = false;
        let pending: Vec<_> = state.unacquired.iter().collect();
        state.unacquired.clear();
        for read in pending {
            let words = self.words;
            let (claim, flag_read) = (words.claim(read), words.flag_read(read));
            let after = claim.map(|c| &c.after).or(flag_read.map(|l| &l.after));
            if after.is_some_and(|a| !a.contains(&id)) {
                state.unacquired.insert(read);
            } else if let Some(flag_read) = flag_read {
                if self.reported.insert(read) {
                    self.report_unacquired_read(flag_read);
                }
            } else if self.reported.insert(read) {
                self.report_unacquired(read, claim, id);
            }
        }
    }

    /// Reports a relaxed poll or claim that reaches `first` on a path without an acquire fence.
    fn report_unacquired(&mut self, read: usize, claim: Option<&Claim>, first: usize) {
        let (op, first_op) = (&self.cx.ops[read], &self.cx.ops[first]);
        let (what, cause) = match claim {
            Some(_) => (
                "a relaxed atomic by which a CTA takes over the data of others",
                "the CTA may then read data from before the others updated the counter",
            ),
            None => (
                "a relaxed load that waits for a flag",
                "later accesses may then read data from before the flag was set",
            ),
        };
        let text = Message::new(format!(
            "`{}` is {what}, and a path leads from it to `{}` without an acquire fence at GPU scope",
            op.op.name(),
            first_op.op.name()
        ))
        .cause(cause);
        self.found.report(&ACQUIRE, op.loc(), op.site.role, text);
        self.label("runs without an acquire fence before it here", first);
        if let Some(claim) = claim {
            self.label("accesses the data here before the update", claim.before);
        }
    }

    fn label(&mut self, text: &str, id: usize) {
        let op = &self.cx.ops[id];
        self.found.label(text, op.loc(), op.site.role);
    }
}
