//! R18, global memory and the proxies: what threads write and copies read.
//!
//! A bulk copy reads global memory by the async proxy. It sees what threads of
//! the grid wrote in the same launch only behind a `fence.proxy.async` of
//! global memory: after the write, before others learn of it; or before the
//! copy, after its thread has learnt.

use super::flow::{Flow, follow};
use super::pointers::Pointers;
use super::{Case, OpSite};
use crate::bits::Bits;
use crate::refusal::{Findings, Rule};
use warpline_ir::{Access, At, Fence, Memory, Op, Operand, ParamId, Proxy, RoleId, Sync, Touch};

/// The rules of this group.
pub const RULES: &[Rule] = &[PROXY];

const PROXY: Rule = Rule {
    code: "R18.proxy",
    holds: "between a thread's write to global memory and a bulk copy that reads it stands a fence.proxy.async of global memory",
};

pub(crate) fn judge<'k>(case: &Case<'k>, found: &mut Findings<'k>) {
    if !case.ops.iter().any(|op| copied(op).is_some()) {
        return;
    }
    let pointers = Pointers::of(case.kernel, &case.ops);
    let param = |addr| pointers.at(addr, 0).map(|spot| spot.param);
    let source: Vec<_> = (case.ops.iter())
        .map(|op| copied(op).and_then(param))
        .collect();
    let target: Vec<_> = (case.ops.iter())
        .map(|op| {
            written(op)
                .and_then(param)
                .filter(|p| source.contains(&Some(*p)))
        })
        .collect();
    let mut seen = Seen {
        target: &target,
        source: &source,
        writes: Bits::new(case.ops.len()),
        copies: Bits::new(case.ops.len()),
        broken: Vec::new(),
    };
    for i in 0..case.kernel.roles.len() {
        let mut read = |op: &OpSite| act(op, source[op.id].is_some(), target[op.id].is_some());
        let steps = case.steps(RoleId(i as u32), &mut read);
        let mut state = State {
            fenced: false,
            written: Bits::new(case.ops.len()),
        };
        follow(&steps, &mut seen, &mut state);
        seen.writes.add(&state.written);
    }
    for (copy, write) in seen.broken() {
        let (copy, write) = (&case.ops[copy], &case.ops[write]);
        let text = format!(
            "between a thread's write to global memory and a bulk copy that reads it stands a fence.proxy.async of global memory; {} may read what {} wrote without one",
            copy.op.name(),
            write.op.name()
        );
        found.refuse(&PROXY, copy.loc(), copy.site.role, text);
        found.beside("the write", write.loc(), write.site.role);
    }
}

/// The address that a bulk copy reads from.
fn copied(op: &OpSite) -> Option<Operand> {
    op.facts.touches.iter().find_map(|t| match t {
        Touch {
            memory: Memory::Global(addr, _),
            access: Access::Read,
            proxy: Proxy::Bulk,
            ..
        } => Some(*addr),
        _ => None,
    })
}

/// The address in global memory that threads write to.
fn written(op: &OpSite) -> Option<Operand> {
    let is_load = matches!(op.op, Op::StrongLoad(_));
    op.facts.touches.iter().find_map(|t| match t {
        Touch {
            memory: Memory::At(At::Global { addr, .. }, _),
            access: Access::Write | Access::Atomic,
            proxy: Proxy::Generic,
            ..
        } if !is_load => Some(*addr),
        _ => None,
    })
}

/// One op, as far as proxies are concerned, with its number.
enum Act {
    Write(usize),
    Copy(usize),
    /// `fence.proxy.async` of global memory.
    Fence,
    /// The thread tells others of its writes, or learns of theirs.
    Meet {
        /// Through a word that copies read too.
        write: Option<usize>,
        learns: bool,
    },
}

fn act(op: &OpSite, copies: bool, writes: bool) -> Option<Act> {
    let id = op.id;
    let write = writes.then_some(id);
    match op.facts.syncs.first() {
        Some(Sync::Fence(Fence::ProxyAsync | Fence::ProxyAsyncGlobal)) => Some(Act::Fence),
        Some(Sync::Fence(_)) => None,
        Some(sync) => Some(Act::Meet {
            write: None,
            learns: learns(sync),
        }),
        None if copies => Some(Act::Copy(id)),
        None => match op.op {
            Op::Atomic(_) | Op::StrongLoad(_) => Some(Act::Meet {
                write,
                learns: true,
            }),
            Op::Reduce(_) | Op::StrongStore(_) => Some(Act::Meet {
                write,
                learns: false,
            }),
            _ => write.map(Act::Write),
        },
    }
}

/// Does a thread learn by it what others have done?
fn learns(sync: &Sync) -> bool {
    matches!(
        sync,
        Sync::Warp { .. }
            | Sync::Wait { .. }
            | Sync::Test { .. }
            | Sync::NamedSync { .. }
            | Sync::NamedTally { .. }
            | Sync::Cta
            | Sync::ClusterWait
    )
}

#[derive(Clone)]
struct State {
    /// On every way here: has a fence come since the last meeting?
    fenced: bool,
    /// On some way here: the thread's writes that no fence has followed.
    written: Bits,
}

/// What was seen in all roles.
struct Seen<'a> {
    /// By op: the parameter that threads write to, if copies read it.
    target: &'a [Option<ParamId>],
    /// By op: the parameter that a copy reads.
    source: &'a [Option<ParamId>],
    /// Writes that others may learn of before a fence.
    writes: Bits,
    /// Copies with no fence since their thread has learnt of anything.
    copies: Bits,
    /// Copies and the writes of the same thread before them, without a fence.
    broken: Vec<(usize, usize)>,
}

impl Flow<Act> for Seen<'_> {
    type State = State;

    fn op(&mut self, act: &Act, state: &mut State) {
        match *act {
            Act::Write(id) => state.written.insert(id),
            Act::Fence => {
                state.fenced = true;
                state.written.clear();
            }
            Act::Meet { write, learns } => {
                write.into_iter().for_each(|id| state.written.insert(id));
                state.fenced &= !learns;
                self.writes.add(&state.written);
            }
            Act::Copy(id) => {
                let same = |w: &usize| self.target[*w] == self.source[id];
                let before = state.written.iter().find(same);
                self.broken.extend(before.map(|write| (id, write)));
                if !state.fenced {
                    self.copies.insert(id);
                }
            }
        }
    }

    fn join(&self, state: &mut State, other: &State) -> bool {
        let lost = state.fenced && !other.fenced;
        state.fenced &= other.fenced;
        state.written.add(&other.written) | lost
    }
}

impl Seen<'_> {
    /// Copies that may read what was written without a fence between, each
    /// with one such write.
    fn broken(mut self) -> Vec<(usize, usize)> {
        for copy in self.copies.iter() {
            let same = |w: &usize| self.target[*w] == self.source[copy];
            let write = self.writes.iter().find(same);
            self.broken.extend(write.map(|write| (copy, write)));
        }
        self.broken.sort_unstable();
        self.broken.dedup_by_key(|(copy, _)| *copy);
        self.broken
    }
}
