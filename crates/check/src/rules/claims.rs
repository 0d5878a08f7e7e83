//! Claims: atomics whose result tells a CTA to take over the data of other CTAs.
//!
//! The last CTA to increment a counter reduces the partial results of all, or clears the words for
//! the next launch. So the atomic releases the accesses before it, and acquires for the accesses
//! that depend on its result. An atomic whose result only selects a work item needs neither, because
//! no other CTA accesses that item.

use super::dependents::Dependents;
use super::global_words::{GlobalWord, Pointers};
use super::{OpSite, RuleContext};
use std::ops::Range;
use warpline_ir::{
    AccessKind, Block, MemoryAddress, MemoryOrder, MemoryRegion, Op, Operand, StmtKind,
};

/// An atomic that claims data of other CTAs.
pub(super) struct Claim {
    /// The index of the op.
    pub(super) op: usize,
    pub(super) order: MemoryOrder,
    /// An access before the atomic, to data that the claiming CTA takes over.
    pub(super) before: usize,
    /// The accesses of the claiming CTA.
    pub(super) after: Vec<usize>,
}

impl Claim {
    /// Returns all claims of a kernel.
    pub(super) fn all(cx: &RuleContext, pointers: &Pointers) -> Vec<Self> {
        let mut atomics = cx.ops.iter().filter_map(atomic).peekable();
        if atomics.peek().is_none() {
            return Vec::new();
        }
        let global_accesses = global_accesses(cx, pointers);
        atomics
            .filter_map(|(op, order)| claim(cx, op, order, &global_accesses))
            .collect()
    }
}

/// Returns an op that is an atomic on global memory and returns the old value, with its order.
fn atomic<'a, 'k>(op: &'a OpSite<'k>) -> Option<(&'a OpSite<'k>, MemoryOrder)> {
    match op.op {
        Op::Atomic(o) if matches!(o.at, MemoryAddress::Global { .. }) => Some((op, o.order)),
        _ => None,
    }
}

/// An access to global memory.
pub(super) struct GlobalAccess {
    pub(super) op: usize,
    pub(super) addr: Operand,
    pub(super) word: GlobalWord,
    access: AccessKind,
}

impl GlobalAccess {
    /// Does the order of the two accesses matter?
    pub(super) fn conflicts(&self, other: &Self) -> bool {
        let commute = self.access == other.access && self.access != AccessKind::Write;
        !commute && self.word.may_equal(other.word)
    }
}

/// Returns all accesses to global memory whose address comes from a known parameter.
pub(super) fn global_accesses(cx: &RuleContext, pointers: &Pointers) -> Vec<GlobalAccess> {
    (cx.ops.iter())
        .flat_map(|op| accesses(op, pointers))
        .collect()
}

fn accesses(op: &OpSite, pointers: &Pointers) -> impl Iterator<Item = GlobalAccess> {
    op.facts.touches.iter().filter_map(|t| {
        let (addr, offset) = match t.memory {
            MemoryRegion::PerLane(MemoryAddress::Global { addr, offset }, _) => (addr, offset),
            MemoryRegion::Global(addr, _) => (addr, 0),
            _ => return None,
        };
        Some(GlobalAccess {
            op: op.id,
            addr,
            word: pointers.word(addr, offset)?,
            access: t.access,
        })
    })
}

/// Returns the claim that an atomic makes, if it is one.
fn claim(
    cx: &RuleContext,
    op: &OpSite,
    order: MemoryOrder,
    global_accesses: &[GlobalAccess],
) -> Option<Claim> {
    let dependents = Dependents::of(cx, |o| o.id == op.id);
    let positions = OpPositions::of(cx, &dependents);
    let may_come_before = |x: &&GlobalAccess| {
        let same_role = cx.ops[x.op].site.role == op.site.role;
        !positions.guarded[x.op]
            && (!same_role || x.op < op.id || positions.share_loop(x.op, op.id))
    };
    // If the address depends on the result, no other CTA accesses these bytes.
    let (mut before, mut after) = (None, Vec::new());
    for y in global_accesses {
        if !positions.guarded[y.op] || dependents.operand(y.addr) {
            continue;
        }
        let conflicting = global_accesses.iter().filter(|x| x.conflicts(y));
        if let Some(x) = conflicting.filter(may_come_before).map(|x| x.op).next() {
            before.get_or_insert(x);
            after.push(y.op);
        }
    }
    Some(Claim {
        op: op.id,
        order,
        before: before?,
        after,
    })
}

/// The positions of ops in branches and loops, by op index.
pub(super) struct OpPositions {
    /// Does a dependent value decide whether the op runs?
    pub(super) guarded: Vec<bool>,
    /// The ops inside each loop.
    loops: Vec<Range<usize>>,
}

impl OpPositions {
    /// Are two ops in the same loop?
    pub(super) fn share_loop(&self, a: usize, b: usize) -> bool {
        self.loops.iter().any(|l| l.contains(&a) && l.contains(&b))
    }

    pub(super) fn of(cx: &RuleContext, dependents: &Dependents) -> Self {
        let mut positions = Self {
            guarded: Vec::with_capacity(cx.ops.len()),
            loops: Vec::new(),
        };
        let kernel = cx.kernel;
        let bodies = kernel.roles.iter().map(|r| &r.body);
        for block in std::iter::once(&kernel.prologue)
            .chain(bodies)
            .chain([&kernel.epilogue])
        {
            positions.block(block, dependents, false);
        }
        positions
    }

    fn block(&mut self, block: &Block, dependents: &Dependents, guarded: bool) {
        for s in &block.0 {
            let first = self.guarded.len();
            match &s.kind {
                StmtKind::Op(_) => self.guarded.push(guarded),
                StmtKind::If {
                    cond, then, other, ..
                } => {
                    let guarded = guarded || dependents.reg(*cond);
                    self.block(then, dependents, guarded);
                    self.block(other, dependents, guarded);
                }
                StmtKind::Elect { body } => self.block(body, dependents, guarded),
                StmtKind::For { from, to, body, .. } => {
                    let guarded = guarded || dependents.operand(*from) || dependents.operand(*to);
                    self.block(body, dependents, guarded);
                    self.loops.push(first..self.guarded.len());
                }
                StmtKind::While { head, cond, body } => {
                    let guarded = guarded || dependents.reg(*cond);
                    self.block(head, dependents, guarded);
                    self.block(body, dependents, guarded);
                    self.loops.push(first..self.guarded.len());
                }
            }
        }
    }
}
