//! R18, proxies of global memory: threads write, and bulk copies read.
//!
//! A bulk copy reads global memory through the async proxy. It sees writes of threads of the same
//! launch only after a `fence.proxy.async` for global memory: in the writer, before it publishes the
//! write; or in the thread that issues the copy, after it has acquired the write.

use super::flow::{Flow, follow};
use super::global_words::Pointers;
use super::{OpSite, RuleContext};
use crate::bits::Bits;
use crate::codes;
use crate::diagnostic::{Findings, Message, Rule};
use warpline_ir::{
    AccessKind, FenceKind, MemoryAccess, MemoryAddress, MemoryRegion, Op, Operand, ParamId, Proxy,
    RoleId, SyncOp,
};

/// The rules of this group.
pub const RULES: &[Rule] = &[PROXY];

const PROXY: Rule = codes::R18_PROXY;

pub(crate) fn judge<'k>(cx: &RuleContext<'k>, found: &mut Findings<'k>) {
    if !cx.ops.iter().any(|op| copied(op).is_some()) {
        return;
    }
    let pointers = Pointers::of(cx.kernel, &cx.ops);
    let param = |addr| pointers.at(addr, 0).map(|spot| spot.param);
    let source: Vec<_> = (cx.ops.iter())
        .map(|op| copied(op).and_then(param))
        .collect();
    let target: Vec<_> = (cx.ops.iter())
        .map(|op| {
            written(op)
                .and_then(param)
                .filter(|p| source.contains(&Some(*p)))
        })
        .collect();
    let mut seen = Seen {
        target: &target,
        source: &source,
        writes: Bits::new(cx.ops.len()),
        copies: Bits::new(cx.ops.len()),
        broken: Vec::new(),
    };
    for i in 0..cx.kernel.roles.len() {
        let mut read = |op: &OpSite| act(op, source[op.id].is_some(), target[op.id].is_some());
        let steps = cx.steps(RoleId(i as u32), &mut read);
        let mut state = State {
            fenced: false,
            written: Bits::new(cx.ops.len()),
        };
        follow(&steps, &mut seen, &mut state);
        seen.writes.add(&state.written);
    }
    for (copy, write) in seen.broken() {
        let (copy, write) = (&cx.ops[copy], &cx.ops[write]);
        let text = Message::new(format!(
            "`{}` may read bytes of global memory that `{}` wrote, without a `fence.proxy.async` in between",
            copy.op.name(),
            write.op.name()
        ))
        .label("reads the bytes here")
        .cause("barriers do not order a generic write before an async read");
        found.report(&PROXY, copy.loc(), copy.site.role, text);
        found.label("writes the bytes here", write.loc(), write.site.role);
    }
}

/// Returns the address that a bulk copy reads from.
fn copied(op: &OpSite) -> Option<Operand> {
    op.facts.touches.iter().find_map(|t| match t {
        MemoryAccess {
            memory: MemoryRegion::Global(addr, _),
            access: AccessKind::Read,
            proxy: Proxy::Bulk,
            ..
        } => Some(*addr),
        _ => None,
    })
}

/// Returns the address of global memory that threads write to.
fn written(op: &OpSite) -> Option<Operand> {
    let is_load = matches!(op.op, Op::StrongLoad(_));
    op.facts.touches.iter().find_map(|t| match t {
        MemoryAccess {
            memory: MemoryRegion::PerLane(MemoryAddress::Global { addr, .. }, _),
            access: AccessKind::Write | AccessKind::Atomic,
            proxy: Proxy::Generic,
            ..
        } if !is_load => Some(*addr),
        _ => None,
    })
}

/// The part of an op that concerns proxies, with the index of the op.
enum Act {
    Write(usize),
    Copy(usize),
    /// `fence.proxy.async` for global memory.
    Fence,
    /// The thread publishes its writes, or acquires writes of others.
    Meet {
        /// The op, if it writes a word that copies read.
        write: Option<usize>,
        learns: bool,
    },
}

fn act(op: &OpSite, copies: bool, writes: bool) -> Option<Act> {
    let id = op.id;
    let write = writes.then_some(id);
    match op.facts.syncs.first() {
        Some(SyncOp::Fence(FenceKind::ProxyAsync | FenceKind::ProxyAsyncGlobal)) => {
            Some(Act::Fence)
        }
        Some(SyncOp::Fence(_)) => None,
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
            Op::AtomicReduce(_) | Op::StrongStore(_) => Some(Act::Meet {
                write,
                learns: false,
            }),
            _ => write.map(Act::Write),
        },
    }
}

/// Does the operation acquire accesses of other threads?
fn learns(sync: &SyncOp) -> bool {
    matches!(
        sync,
        SyncOp::Warp { .. }
            | SyncOp::Wait { .. }
            | SyncOp::Test { .. }
            | SyncOp::NamedSync { .. }
            | SyncOp::NamedReduce { .. }
            | SyncOp::Cta
            | SyncOp::ClusterWait
    )
}

#[derive(Clone)]
struct State {
    /// On every path to this point: a fence since the last acquire?
    fenced: bool,
    /// On some path to this point: writes of the thread without a later fence.
    written: Bits,
}

/// The findings of all roles.
struct Seen<'a> {
    /// By op: the parameter that threads write to, if copies read it.
    target: &'a [Option<ParamId>],
    /// By op: the parameter that a copy reads.
    source: &'a [Option<ParamId>],
    /// Writes that may be published before a fence.
    writes: Bits,
    /// Copies without a fence since the last acquire of their thread.
    copies: Bits,
    /// Copies with an earlier write of the same thread, without a fence in between.
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
    /// Returns the copies that may read a written word without a fence in between, each with one
    /// such write.
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
