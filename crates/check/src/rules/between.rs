//! R18, global memory between CTAs: who waits for whom, and what passes.
//!
//! A CTA waits for another by asking for a word again and again: a poll. All
//! CTAs are then on the machine together, or those that would change the word
//! may never start; and what the word stands for passes by a release and an
//! acquire that reach the whole device. A CTA that learns from an atomic that
//! it is the last one waits for nobody, but what passes to it passes the same
//! way: a claim.

use super::claims::Claim;
use super::flow::{Flow, follow};
use super::looks::Look;
use super::pointers::{Pointers, Spot};
use super::poll::Poll;
use super::{Case, OpSite, locks, published, scope, stall};
use crate::bits::Bits;
use crate::refusal::{Findings, Rule};
use std::collections::HashSet;
use warpline_ir::{At, MemoryOrder, Op, Operand, RoleId, Scope, Sync};

/// The rules of this group.
pub const RULES: &[Rule] = &[
    RESIDENT,
    stall::RAISED,
    stall::CYCLE,
    ACQUIRE,
    RELEASE,
    scope::SCOPE,
    locks::LOCKS,
    published::COMPLETE,
];

const RESIDENT: Rule = Rule {
    code: "R18.resident",
    holds: "a kernel whose CTAs wait for each other through global memory says so: it is co-resident",
};
const ACQUIRE: Rule = Rule {
    code: "R18.acquire",
    holds: "a word that CTAs wait for, or by whose value a thread goes on to data of others, is read by an acquire at the scope of the device, or a relaxed access and a fence",
};
const RELEASE: Rule = Rule {
    code: "R18.release",
    holds: "a word that CTAs wait for, or by whose value one takes over, is raised by a release at the scope of the device, or a fence and a relaxed write",
};

pub(crate) fn judge<'k>(case: &Case<'k>, found: &mut Findings<'k>) {
    let pointers = Pointers::of(case.kernel, &case.ops);
    let spins = Poll::all(case);
    stall::judge(case, &spins, &pointers, found);
    locks::judge(case, &spins, &pointers, found);
    let polls = Poll::loads(spins);
    let claims = Claim::all(case, &pointers);
    let looks = Look::all(case, &pointers, &polls);
    if !polls.is_empty() && !case.kernel.co_resident {
        let op = &case.ops[polls[0].op];
        let text = "CTAs that wait for each other through global memory are all on the machine at once; this loop waits for a word there, and the kernel is not declared co-resident";
        found.refuse(&RESIDENT, op.loc(), op.site.role, text);
    }
    let words = Words {
        raised: polls
            .iter()
            .filter_map(|p| pointers.at(p.addr, p.offset))
            .collect(),
        polls,
        claims,
        looks,
        pointers,
    };
    published::judge(case, &words.flags(case), found);
    let mut between = Between {
        case,
        words: &words,
        found,
        told: HashSet::new(),
    };
    between.polls();
    between.looks();
    if !words.is_empty() {
        for i in 0..case.kernel.roles.len() {
            let steps = case.steps(RoleId(i as u32), &mut |op| words.act(op));
            let mut state = State {
                released: false,
                asked: Bits::new(case.ops.len()),
            };
            follow(&steps, &mut between, &mut state);
        }
    }
    scope::judge(case, &between.told, between.found);
}

/// One op, as far as words between CTAs are concerned, with its number.
enum Act {
    /// A relaxed poll.
    Ask(usize),
    /// Raises a word that CTAs wait for, by a write of this order.
    Raise(usize, Option<MemoryOrder>),
    /// A relaxed load: a branch on its value leads to data that other threads wrote.
    Look(usize),
    /// Raises a word, and takes over by what it held.
    Claim(usize, MemoryOrder),
    Fence(MemoryOrder),
    /// Any other access of memory, or a meeting of threads.
    Other(usize),
}

/// The words between CTAs, and who asks for them.
struct Words {
    polls: Vec<Poll>,
    claims: Vec<Claim>,
    looks: Vec<Look>,
    /// Where the words lie that are waited for.
    raised: Vec<Spot>,
    pointers: Pointers,
}

impl Words {
    fn is_empty(&self) -> bool {
        self.polls.is_empty() && self.claims.is_empty() && self.looks.is_empty()
    }

    /// What raises flags, and what looks at them.
    fn flags(&self, case: &Case) -> published::Flags<'_> {
        let at = |addr, offset| self.pointers.at(addr, offset);
        let polls = self.polls.iter();
        let polls = polls.filter_map(|p| Some((p.op, at(p.addr, p.offset)?)));
        let claims = self.claims.iter().filter_map(|c| match case.ops[c.op].op {
            Op::Atomic(o) => match o.at {
                At::Global { addr, offset } => Some((c.op, at(addr, offset)?)),
                At::Shared(_) => None,
            },
            _ => None,
        });
        let looks = self.looks.iter().map(|l| (l.op, l.word));
        let readers: Vec<_> = polls.chain(claims).chain(looks).collect();
        let raises = case.ops.iter().filter_map(|op| {
            let word = match op.op {
                Op::StrongStore(o) => o.at,
                Op::Reduce(o) => o.at,
                Op::Atomic(o) => o.at,
                Op::Store(o) if o.src.iter().any(|x| *x != Operand::Imm(0)) => o.at,
                _ => return None,
            };
            let At::Global { addr, offset } = word else {
                return None;
            };
            let spot = at(addr, offset)?;
            let is_read = readers.iter().any(|r| r.1.may_be(spot));
            is_read.then_some((op.id, spot))
        });
        published::Flags {
            raises: raises.collect(),
            readers,
            pointers: &self.pointers,
        }
    }

    fn look(&self, op: usize) -> Option<&Look> {
        self.looks.iter().find(|l| l.op == op)
    }

    fn claim(&self, op: usize) -> Option<&Claim> {
        self.claims.iter().find(|c| c.op == op)
    }

    /// May this be a word that CTAs wait for?
    fn is_raised(&self, at: &At) -> bool {
        match *at {
            At::Global { addr, offset } => {
                let spot = self.pointers.at(addr, offset);
                spot.is_some_and(|s| self.raised.iter().any(|w| w.may_be(s)))
            }
            At::Shared(_) => false,
        }
    }

    fn act(&self, op: &OpSite) -> Option<Act> {
        let id = op.id;
        if let Some(poll) = self.polls.iter().find(|p| p.op == id) {
            let relaxed = poll.order.filter(|o| !o.sem.acquires());
            return relaxed.map(|_| Act::Ask(id));
        }
        if let Some(look) = self.look(id) {
            return Some(match look.order {
                Some(_) => Act::Look(id),
                None => Act::Other(id),
            });
        }
        if let Some(claim) = self.claim(id) {
            return Some(Act::Claim(id, claim.order));
        }
        match op.op {
            Op::Fence(fence) if !fence.fence.is_shared_only() => {
                fence.fence.order().map(Act::Fence)
            }
            Op::Fence(_) => None,
            // A plain zero makes the word ready for the next launch.
            Op::Store(o)
                if self.is_raised(&o.at) && o.src.iter().any(|x| *x != Operand::Imm(0)) =>
            {
                Some(Act::Raise(id, None))
            }
            Op::StrongStore(o) if self.is_raised(&o.at) => Some(Act::Raise(id, Some(o.order))),
            Op::Reduce(o) if self.is_raised(&o.at) => Some(Act::Raise(id, Some(o.order))),
            Op::Atomic(o) if self.is_raised(&o.at) => Some(Act::Raise(id, Some(o.order))),
            _ => {
                let meets = |s: &Sync| !matches!(s, Sync::Fence(_));
                let other = !op.facts.touches.is_empty() || op.facts.syncs.iter().any(meets);
                other.then_some(Act::Other(id))
            }
        }
    }
}

#[derive(Clone)]
struct State {
    /// On every way here: has a releasing fence come, and no access since?
    released: bool,
    /// On some way here: relaxed polls and claims that no acquiring fence has followed.
    asked: Bits,
}

struct Between<'a, 'k> {
    case: &'a Case<'k>,
    words: &'a Words,
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
            Act::Claim(id, order) => {
                self.raise(id, Some(order), state.released);
                self.other(id, state);
                if !order.sem.acquires() {
                    state.asked.insert(id);
                }
            }
            Act::Look(id) => {
                self.other(id, state);
                state.asked.insert(id);
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
    /// Polls that are no acquire, whatever comes behind them.
    fn polls(&mut self) {
        for poll in &self.words.polls {
            let op = &self.case.ops[poll.op];
            if poll.order.is_none_or(|o| o.scope < Scope::Gpu) {
                let text = format!(
                    "a word that CTAs wait for is read by an acquire at the scope of the device; {} is none",
                    op.op.name()
                );
                self.found.refuse(&ACQUIRE, op.loc(), op.site.role, text);
                self.told.insert(poll.op);
            }
        }
    }

    /// Plain loads that branch to data of others: no fence makes them an acquire.
    fn looks(&mut self) {
        let words = self.words;
        for look in words.looks.iter().filter(|l| l.order.is_none()) {
            if self.told.insert(look.op) {
                self.unacquired_look(look);
            }
        }
    }

    /// A flag is looked at once, without an acquire.
    fn unacquired_look(&mut self, look: &Look) {
        let op = &self.case.ops[look.op];
        let name = &self.case.kernel.param(look.word.param).name;
        let text = format!(
            "missing acquire: {} reads the flag in {name} once and branches to data that another thread wrote before it raised the flag, but nothing orders the data behind the load",
            op.op.name()
        );
        self.found.refuse(&ACQUIRE, op.loc(), op.site.role, text);
        self.beside(
            "the data is touched here, because of the flag",
            look.after[0],
        );
        self.beside(
            "the data was touched here before the flag is raised",
            look.before,
        );
        self.beside("the flag is raised here", look.raise);
        self.found.help("load the flag with `MemoryOrder::acquire(Scope::Gpu)`, or with a relaxed load and `fence_acquire(Scope::Gpu)` behind the branch");
    }

    /// A write to a word that CTAs wait for or claim by.
    fn raise(&mut self, id: usize, order: Option<MemoryOrder>, released: bool) {
        let reaches = order.is_some_and(|o| o.scope >= Scope::Gpu);
        let releases = order.is_some_and(|o| o.sem.releases());
        if reaches && (releases || released) || !self.told.insert(id) {
            return;
        }
        let op = &self.case.ops[id];
        let claim = self.words.claim(id);
        let word = match claim {
            Some(_) => "a word by whose value a CTA takes over what others have touched",
            None => "a word that CTAs wait for",
        };
        let text = format!(
            "{word} is raised by a release at the scope of the device, or behind a fence that is one; {} is neither",
            op.op.name()
        );
        self.found.refuse(&RELEASE, op.loc(), op.site.role, text);
        if let Some(claim) = claim {
            self.beside("what comes before", claim.before);
            self.beside("who takes it over", claim.after[0]);
        }
    }

    /// An access, or a meeting: what was asked for must have been acquired.
    fn other(&mut self, id: usize, state: &mut State) {
        state.released = false;
        let asked: Vec<_> = state.asked.iter().collect();
        state.asked.clear();
        for asked in asked {
            let words = self.words;
            let (claim, look) = (words.claim(asked), words.look(asked));
            let after = claim.map(|c| &c.after).or(look.map(|l| &l.after));
            if after.is_some_and(|a| !a.contains(&id)) {
                state.asked.insert(asked);
            } else if let Some(look) = look {
                if self.told.insert(asked) {
                    self.unacquired_look(look);
                }
            } else if self.told.insert(asked) {
                self.unacquired(asked, claim, id);
            }
        }
    }

    /// What comes first behind a relaxed poll or claim is no fence.
    fn unacquired(&mut self, asked: usize, claim: Option<&Claim>, first: usize) {
        let (op, first_op) = (&self.case.ops[asked], &self.case.ops[first]);
        let what = match claim {
            Some(_) => "a relaxed atomic by whose value a CTA takes over what others have touched",
            None => "a relaxed load that waits for a word",
        };
        let text = format!(
            "{what} is followed by a fence that acquires at the scope of the device; {} may come before one",
            first_op.op.name()
        );
        self.found.refuse(&ACQUIRE, op.loc(), op.site.role, text);
        self.beside("what comes first", first);
        if let Some(claim) = claim {
            self.beside("what it takes over", claim.before);
        }
    }

    fn beside(&mut self, text: &str, id: usize) {
        let op = &self.case.ops[id];
        self.found.beside(text, op.loc(), op.site.role);
    }
}
