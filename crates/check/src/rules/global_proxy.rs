//! R18, proxies of global memory: threads write, and bulk copies read.
//!
//! A bulk copy reads global memory through the async proxy. It sees writes of threads of the same
//! launch only after a `fence.proxy.async` for global memory: in the writer, before it publishes
//! the write; or in the thread that issues the copy, after it has acquired the write.

use super::flow::{Dataflow, run_dataflow};
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

pub(crate) fn check<'k>(cx: &RuleContext<'k>, found: &mut Findings<'k>) {
    if !cx.ops.iter().any(|op| bulk_read_address(op).is_some()) {
        return;
    }
    let pointers = Pointers::of(cx.kernel, &cx.ops);
    let param = |addr| pointers.word(addr, 0).map(|word| word.param);
    let read_params: Vec<_> = (cx.ops.iter())
        .map(|op| bulk_read_address(op).and_then(param))
        .collect();
    let written_params: Vec<_> = (cx.ops.iter())
        .map(|op| {
            written_address(op)
                .and_then(param)
                .filter(|p| read_params.contains(&Some(*p)))
        })
        .collect();
    let mut analysis = ProxyAnalysis {
        written_params: &written_params,
        read_params: &read_params,
        writes: Bits::new(cx.ops.len()),
        copies: Bits::new(cx.ops.len()),
        broken: Vec::new(),
    };
    for i in 0..cx.kernel.roles.len() {
        let mut read = |op: &OpSite| {
            act(
                op,
                read_params[op.id].is_some(),
                written_params[op.id].is_some(),
            )
        };
        let steps = cx.steps(RoleId(i as u32), &mut read);
        let mut state = State {
            fenced: false,
            written: Bits::new(cx.ops.len()),
        };
        run_dataflow(&steps, &mut analysis, &mut state);
        analysis.writes.add(&state.written);
    }
    for (copy, write) in analysis.into_broken() {
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
fn bulk_read_address(op: &OpSite) -> Option<Operand> {
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
fn written_address(op: &OpSite) -> Option<Operand> {
    op.writes().find_map(|t| match t {
        MemoryAccess {
            memory: MemoryRegion::PerLane(MemoryAddress::Global { addr, .. }, _),
            proxy: Proxy::Generic,
            ..
        } => Some(*addr),
        _ => None,
    })
}

/// The part of an op that concerns proxies, with the index of the op.
enum Act {
    /// A write of a thread to memory that copies read.
    Write(usize),
    /// A bulk copy from global memory.
    Copy(usize),
    /// `fence.proxy.async` for global memory.
    Fence,
    /// An operation that may publish the writes of the thread, or acquire writes of others.
    Sync {
        /// The op, if it also writes memory that copies read.
        write: Option<usize>,
        acquires: bool,
    },
}

fn act(op: &OpSite, is_copy: bool, is_write: bool) -> Option<Act> {
    let id = op.id;
    let write = is_write.then_some(id);
    match op.facts.syncs.first() {
        Some(SyncOp::Fence(FenceKind::ProxyAsync | FenceKind::ProxyAsyncGlobal)) => {
            Some(Act::Fence)
        }
        Some(SyncOp::Fence(_)) => None,
        Some(sync) => Some(Act::Sync {
            write: None,
            acquires: acquires(sync),
        }),
        None if is_copy => Some(Act::Copy(id)),
        None => match op.op {
            Op::Atomic(_) | Op::StrongLoad(_) => Some(Act::Sync {
                write,
                acquires: true,
            }),
            Op::AtomicReduce(_) | Op::StrongStore(_) => Some(Act::Sync {
                write,
                acquires: false,
            }),
            _ => write.map(Act::Write),
        },
    }
}

/// Does the operation acquire accesses of other threads?
fn acquires(sync: &SyncOp) -> bool {
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
struct ProxyAnalysis<'a> {
    /// By op: the parameter that threads write to, if copies read it.
    written_params: &'a [Option<ParamId>],
    /// By op: the parameter that a copy reads.
    read_params: &'a [Option<ParamId>],
    /// Writes that may be published before a fence.
    writes: Bits,
    /// Copies without a fence since the last acquire of their thread.
    copies: Bits,
    /// Copies with an earlier write of the same thread, without a fence in between.
    broken: Vec<(usize, usize)>,
}

impl Dataflow<Act> for ProxyAnalysis<'_> {
    type State = State;

    fn op(&mut self, act: &Act, state: &mut State) {
        match *act {
            Act::Write(id) => state.written.insert(id),
            Act::Fence => {
                state.fenced = true;
                state.written.clear();
            }
            Act::Sync { write, acquires } => {
                write.into_iter().for_each(|id| state.written.insert(id));
                state.fenced &= !acquires;
                self.writes.add(&state.written);
            }
            Act::Copy(id) => {
                let same = |w: &usize| self.written_params[*w] == self.read_params[id];
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

impl ProxyAnalysis<'_> {
    /// Returns the copies that may read a written word without a fence in between, each with one
    /// such write.
    fn into_broken(mut self) -> Vec<(usize, usize)> {
        for copy in self.copies.iter() {
            let same = |w: &usize| self.written_params[*w] == self.read_params[copy];
            let write = self.writes.iter().find(same);
            self.broken.extend(write.map(|write| (copy, write)));
        }
        self.broken.sort_unstable();
        self.broken.dedup_by_key(|(copy, _)| *copy);
        self.broken
    }
}
