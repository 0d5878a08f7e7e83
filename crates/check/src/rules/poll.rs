//! Polls: loops that read a word of global memory until another thread has changed it.

use super::control_flow::{Def, Loop, LoopKind};
use super::{OpSite, RuleContext};
use warpline_ir::ops::memory::LoadPath;
use warpline_ir::{MemoryAddress, MemoryOrder, Op, Operand, RegId, Scope};

/// A read of a polling loop.
#[derive(Clone, Copy)]
pub(super) struct Poll {
    /// The index of the op.
    pub(super) op: usize,
    pub(super) addr: Operand,
    pub(super) offset: i32,
    /// The memory order; `None` for a weak load.
    pub(super) order: Option<MemoryOrder>,
    /// The index of the loop.
    pub(super) loop_id: usize,
    /// Does the read also change the word?
    pub(super) is_atomic: bool,
}

impl Poll {
    /// Returns all polls of a kernel, by loop. The end of a polling loop depends on a word whose
    /// address the loop does not change.
    pub(super) fn all(cx: &RuleContext) -> Vec<Self> {
        let mut polls = Vec::new();
        if !cx.ops.iter().any(|op| global_read(op).is_some()) {
            return polls;
        }
        for (id, poll_loop) in cx.code.loops.iter().enumerate() {
            if let LoopKind::While { cond } = poll_loop.kind {
                LoopSlice { cx, poll_loop, id }.polls(cond, &mut polls);
            }
        }
        polls
    }

    /// Returns the polls that only read, each once.
    pub(super) fn loads(mut polls: Vec<Self>) -> Vec<Self> {
        polls.retain(|p| !p.is_atomic);
        polls.sort_by_key(|p| p.op);
        polls.dedup_by_key(|p| p.op);
        polls
    }
}

/// Returns the address, the offset, the memory order (`None` if weak) and whether the op is an
/// atomic, if it reads a word of global memory.
pub(super) fn global_read(op: &OpSite) -> Option<(Operand, i32, Option<MemoryOrder>, bool)> {
    let (at, order, is_atomic) = match op.op {
        Op::StrongLoad(o) => (o.at, Some(o.order), false),
        Op::Load(o) if o.cache.path == LoadPath::Volatile => {
            (o.at, Some(MemoryOrder::relaxed(Scope::Sys)), false)
        }
        Op::Load(o) => (o.at, None, false),
        Op::Atomic(o) => (o.at, Some(o.order), true),
        _ => return None,
    };
    match at {
        MemoryAddress::Global { addr, offset } => Some((addr, offset, order, is_atomic)),
        MemoryAddress::Shared(_) => None,
    }
}

/// Follows values back to their definitions inside a loop.
struct LoopSlice<'a, 'k> {
    cx: &'a RuleContext<'k>,
    poll_loop: &'a Loop,
    id: usize,
}

impl LoopSlice<'_, '_> {
    /// Returns the ops of the loop that write a register.
    fn defs_in_loop(&self, r: RegId) -> impl Iterator<Item = usize> {
        let ops = self.cx.code.defs(r).iter().filter_map(|d| match d {
            Def::Op(id) => Some(*id),
            Def::Counter(_) => None,
        });
        ops.filter(|i| self.poll_loop.ops.contains(i))
    }

    /// Adds the reads of loop-invariant addresses that a register depends on, by data or by control
    /// flow.
    fn polls(&self, from: RegId, polls: &mut Vec<Poll>) {
        let mut seen = vec![from];
        let mut next = 0;
        while let Some(&r) = seen.get(next) {
            next += 1;
            for i in self.defs_in_loop(r) {
                let op = &self.cx.ops[i];
                let guards = self.cx.code.guards_in(i, self.poll_loop);
                let mut reads: Vec<RegId> = guards.map(|g| g.cond).collect();
                if let Some((addr, offset, order, is_atomic)) = global_read(op) {
                    let known = polls.iter().any(|p| p.op == i && p.loop_id == self.id);
                    if !known && self.is_invariant(addr, 0) {
                        polls.push(Poll {
                            op: i,
                            addr,
                            offset,
                            order,
                            loop_id: self.id,
                            is_atomic,
                        });
                    }
                } else if op.facts.touches.is_empty() {
                    reads.extend(op.facts.named_reads());
                }
                for r in reads {
                    if !seen.contains(&r) {
                        seen.push(r);
                    }
                }
            }
        }
    }

    /// Is a value loop-invariant?
    fn is_invariant(&self, o: Operand, depth: u32) -> bool {
        /// The analysis treats a value behind a longer chain of ops as not loop-invariant.
        const MAX_DEPTH: u32 = 16;
        let Some(r) = o.as_reg() else { return true };
        depth < MAX_DEPTH
            && self.defs_in_loop(r).all(|i| {
                let facts = &self.cx.ops[i].facts;
                let mut reads = facts.named_reads();
                facts.touches.is_empty() && reads.all(|r| self.is_invariant(r.into(), depth + 1))
            })
    }
}
