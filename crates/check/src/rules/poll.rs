//! Loops that ask global memory for a word until another thread has changed it.

use super::code::{Def, Loop, LoopKind};
use super::{Case, OpSite};
use warpline_ir::ops::memory::LoadPath;
use warpline_ir::{At, MemoryOrder, Op, Operand, RegId, Scope};

/// A read of such a loop.
#[derive(Clone, Copy)]
pub(super) struct Poll {
    /// Its number among the ops.
    pub(super) op: usize,
    pub(super) addr: Operand,
    pub(super) offset: i32,
    /// Its order; `None`: it is not strong.
    pub(super) order: Option<MemoryOrder>,
    /// The number of the loop.
    pub(super) spins: usize,
    /// Does it change the word, too?
    pub(super) is_atomic: bool,
}

impl Poll {
    /// Returns all polls of a kernel, by loop: the loop ends on the value read from a fixed address.
    pub(super) fn all(case: &Case) -> Vec<Self> {
        let mut polls = Vec::new();
        if !case.ops.iter().any(|op| read(op).is_some()) {
            return polls;
        }
        for (id, around) in case.code.loops.iter().enumerate() {
            if let LoopKind::While { cond } = around.kind {
                Slice { case, around, id }.polls(cond, &mut polls);
            }
        }
        polls
    }

    /// Those of them that only read, each once.
    pub(super) fn loads(mut polls: Vec<Self>) -> Vec<Self> {
        polls.retain(|p| !p.is_atomic);
        polls.sort_by_key(|p| p.op);
        polls.dedup_by_key(|p| p.op);
        polls
    }
}

/// A read of a word of global memory: where, its order if it is strong, and
/// whether it changes the word.
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
        At::Global { addr, offset } => Some((addr, offset, order, is_atomic)),
        At::Shared(_) => None,
    }
}

/// The origin of values of a loop, inside of it.
struct Slice<'a, 'k> {
    case: &'a Case<'k>,
    around: &'a Loop,
    id: usize,
}

impl Slice<'_, '_> {
    /// The ops of the loop that write a register.
    fn made(&self, r: RegId) -> impl Iterator<Item = usize> {
        let ops = self.case.code.defs(r).iter().filter_map(|d| match d {
            Def::Op(id) => Some(*id),
            Def::Counter(_) => None,
        });
        ops.filter(|i| self.around.ops.contains(i))
    }

    /// Adds the reads of fixed addresses that decide a register: by the value
    /// it is computed from, or by a branch around the computation.
    fn polls(&self, from: RegId, polls: &mut Vec<Poll>) {
        let mut seen = vec![from];
        let mut at = 0;
        while let Some(&r) = seen.get(at) {
            at += 1;
            for i in self.made(r) {
                let op = &self.case.ops[i];
                let guards = self.case.code.guards_in(i, self.around);
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

    /// Is a value the same in every round?
    fn is_fixed(&self, o: Operand, depth: u32) -> bool {
        /// Sums longer than this are taken to change.
        const MOST: u32 = 16;
        let Some(r) = o.as_reg() else { return true };
        depth < MOST
            && self.made(r).all(|i| {
                let facts = &self.case.ops[i].facts;
                let mut reads = facts.named_reads();
                facts.touches.is_empty() && reads.all(|r| self.is_fixed(r.into(), depth + 1))
            })
    }
}
