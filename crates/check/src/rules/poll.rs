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
    pub(super) spins: usize,
    /// Does the read also change the word?
    pub(super) is_atomic: bool,
}

impl Poll {
    /// Returns all polls of a kernel, by loop: the loop ends on the value read from a fixed address.
    pub(super) fn all(cx: &RuleContext) -> Vec<Self> {
        let mut polls = Vec::new();
        if !cx.ops.iter().any(|op| read(op).is_some()) {
            return polls;
        }
        for (id, around) in cx.code.loops.iter().enumerate() {
            if let LoopKind::While { cond } = around.kind {
                Slice { cx, around, id }.polls(cond, &mut polls);
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

/// Returns the address, the memory order (`None` if weak) and whether it is an atomic, for an op
/// that reads a word of global memory.
pub(super) fn read(op: &OpSite) -> Option<(Operand, i32, Option<MemoryOrder>, bool)> {
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

/// Follows values of a loop back to their origin inside the loop.
struct Slice<'a, 'k> {
    cx: &'a RuleContext<'k>,
    around: &'a Loop,
    id: usize,
}

impl Slice<'_, '_> {
    /// Returns the ops of the loop that write a register.
    fn made(&self, r: RegId) -> impl Iterator<Item = usize> {
        let ops = self.cx.code.defs(r).iter().filter_map(|d| match d {
            Def::Op(id) => Some(*id),
            Def::Counter(_) => None,
        });
        ops.filter(|i| self.around.ops.contains(i))
    }

    /// Adds the reads of loop-invariant addresses that a register depends on, by data or by control
    /// flow.
    fn polls(&self, from: RegId, polls: &mut Vec<Poll>) {
        let mut seen = vec![from];
        let mut at = 0;
        while let Some(&r) = seen.get(at) {
            at += 1;
            for i in self.made(r) {
                let op = &self.cx.ops[i];
                let guards = self.cx.code.guards_in(i, self.around);
                let mut reads: Vec<RegId> = guards.map(|g| g.cond).collect();
                if let Some((addr, offset, order, is_atomic)) = read(op) {
                    let known = polls.iter().any(|p| p.op == i && p.spins == self.id);
                    if !known && self.is_fixed(addr, 0) {
                        polls.push(Poll {
                            op: i,
                            addr,
                            offset,
                            order,
                            spins: self.id,
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
    fn is_fixed(&self, o: Operand, depth: u32) -> bool {
        /// Longer chains of ops are assumed to change.
        const MOST: u32 = 16;
        let Some(r) = o.as_reg() else { return true };
        depth < MOST
            && self.made(r).all(|i| {
                let facts = &self.cx.ops[i].facts;
                let mut reads = facts.named_reads();
                facts.touches.is_empty() && reads.all(|r| self.is_fixed(r.into(), depth + 1))
            })
    }
}
