//! R18, global memory between CTAs: who waits for whom, and what passes.
//!
//! A CTA waits for another by asking for a word again and again: a poll. All
//! CTAs are then on the machine together, or those that would change the word
//! may never start; and what the word stands for passes by a release and an
//! acquire that reach the whole device.

use super::flow::{Flow, follow};
use super::pointers::{Pointers, Spot};
use super::poll::Poll;
use super::{Case, OpSite};
use crate::bits::Bits;
use crate::refusal::{Findings, Rule};
use std::collections::HashSet;
use warpline_ir::{At, MemoryOrder, Op, Operand, RoleId, Scope, Sync};

/// The rules of this group.
pub const RULES: &[Rule] = &[RESIDENT, ACQUIRE, RELEASE];

const RESIDENT: Rule = Rule {
    code: "R18.resident",
    holds: "a kernel whose CTAs wait for each other through global memory says so: it is co-resident",
};
const ACQUIRE: Rule = Rule {
    code: "R18.acquire",
    holds: "a word that CTAs wait for is read by an acquire at the scope of the device, or a relaxed load and a fence",
};
const RELEASE: Rule = Rule {
    code: "R18.release",
    holds: "a word that CTAs wait for is raised by a release at the scope of the device, or a fence and a relaxed write",
};

pub(crate) fn judge<'k>(case: &Case<'k>, found: &mut Findings<'k>) {
    let polls = Poll::all(case);
    if polls.is_empty() {
        return;
    }
    if !case.kernel.co_resident {
        let op = &case.ops[polls[0].op];
        let text = "CTAs that wait for each other through global memory are all on the machine at once; this loop waits for a word there, and the kernel is not declared co-resident";
        found.refuse(&RESIDENT, op.loc(), op.site.role, text);
    }
    for poll in &polls {
        let op = &case.ops[poll.op];
        if poll.order.is_none_or(|o| o.scope < Scope::Gpu) {
            let text = format!(
                "a word that CTAs wait for is read by an acquire at the scope of the device; {} is none",
                op.op.name()
            );
            found.refuse(&ACQUIRE, op.loc(), op.site.role, text);
        }
    }
    let pointers = Pointers::of(case.kernel, &case.ops);
    let words: Vec<_> = polls
        .iter()
        .filter_map(|p| pointers.at(p.addr, p.offset))
        .collect();
    let mut between = Between {
        case,
        found,
        told: HashSet::new(),
    };
    for i in 0..case.kernel.roles.len() {
        let mut read = |op: &OpSite| act(op, &polls, &words, &pointers);
        let steps = case.steps(RoleId(i as u32), &mut read);
        let mut state = State {
            released: false,
            asked: Bits::new(case.ops.len()),
        };
        follow(&steps, &mut between, &mut state);
    }
}

/// One op, as far as words between CTAs are concerned, with its number.
enum Act {
    /// A relaxed poll.
    Ask(usize),
    /// Raises a word that CTAs wait for, by a write of this order.
    Raise(usize, Option<MemoryOrder>),
    Fence(MemoryOrder),
    /// Any other access of memory, or a meeting of threads.
    Other(usize),
}

fn act(op: &OpSite, polls: &[Poll], words: &[Spot], pointers: &Pointers) -> Option<Act> {
    let id = op.id;
    if let Some(poll) = polls.iter().find(|p| p.op == id) {
        let relaxed = poll.order.filter(|o| !o.sem.acquires());
        return relaxed.map(|_| Act::Ask(id));
    }
    let raised = |at: &At| match *at {
        At::Global { addr, offset } => {
            let spot = pointers.at(addr, offset);
            spot.is_some_and(|s| words.iter().any(|w| w.may_be(s)))
        }
        At::Shared(_) => false,
    };
    match op.op {
        Op::Fence(fence) if !fence.fence.is_shared_only() => fence.fence.order().map(Act::Fence),
        Op::Fence(_) => None,
        // A plain zero makes the word ready for the next launch.
        Op::Store(o) if raised(&o.at) && o.src.iter().any(|x| *x != Operand::Imm(0)) => {
            Some(Act::Raise(id, None))
        }
        Op::StrongStore(o) if raised(&o.at) => Some(Act::Raise(id, Some(o.order))),
        Op::Reduce(o) if raised(&o.at) => Some(Act::Raise(id, Some(o.order))),
        Op::Atomic(o) if raised(&o.at) => Some(Act::Raise(id, Some(o.order))),
        _ => {
            let meets = |s: &Sync| !matches!(s, Sync::Fence(_));
            let other = !op.facts.touches.is_empty() || op.facts.syncs.iter().any(meets);
            other.then_some(Act::Other(id))
        }
    }
}

#[derive(Clone)]
struct State {
    /// On every way here: has a releasing fence come, and no access since?
    released: bool,
    /// On some way here: relaxed polls that no acquiring fence has followed.
    asked: Bits,
}

struct Between<'a, 'k> {
    case: &'a Case<'k>,
    found: &'a mut Findings<'k>,
    /// Ops refused already.
    told: HashSet<usize>,
}

impl Flow<Act> for Between<'_, '_> {
    type State = State;

    fn op(&mut self, act: &Act, state: &mut State) {
        match *act {
            Act::Ask(id) => {
                state.released = false;
                state.asked.insert(id);
            }
            Act::Fence(order) if order.scope >= Scope::Gpu => {
                state.released |= order.sem.releases();
                if order.sem.acquires() {
                    state.asked.clear();
                }
            }
            Act::Fence(_) => {}
            Act::Raise(id, order) => {
                self.raise(id, order, state.released);
                self.other(id, state);
            }
            Act::Other(id) => self.other(id, state),
        }
    }

    fn join(&self, state: &mut State, other: &State) -> bool {
        let lost = state.released && !other.released;
        state.released &= other.released;
        state.asked.add(&other.asked) | lost
    }
}

impl Between<'_, '_> {
    /// A write to a word that CTAs wait for.
    fn raise(&mut self, id: usize, order: Option<MemoryOrder>, released: bool) {
        let reaches = order.is_some_and(|o| o.scope >= Scope::Gpu);
        let releases = order.is_some_and(|o| o.sem.releases());
        if !(reaches && (releases || released)) && self.told.insert(id) {
            let op = &self.case.ops[id];
            let text = format!(
                "a word that CTAs wait for is raised by a release at the scope of the device, or behind a fence that is one; {} is neither",
                op.op.name()
            );
            self.found.refuse(&RELEASE, op.loc(), op.site.role, text);
        }
    }

    /// An access, or a meeting: what was waited for must have been acquired.
    fn other(&mut self, id: usize, state: &mut State) {
        state.released = false;
        let asked: Vec<_> = state.asked.iter().collect();
        for poll in asked {
            if self.told.insert(poll) {
                let (poll, op) = (&self.case.ops[poll], &self.case.ops[id]);
                let text = format!(
                    "a relaxed load that waits for a word is followed by a fence that acquires at the scope of the device; {} may come before one",
                    op.op.name()
                );
                self.found
                    .refuse(&ACQUIRE, poll.loc(), poll.site.role, text);
                self.found
                    .beside("what comes first", op.loc(), op.site.role);
            }
        }
        state.asked.clear();
    }
}
