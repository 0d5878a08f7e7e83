//! Claims: atomics by whose result a CTA takes over data of the other CTAs.
//!
//! The last CTA to increment a counter reduces the partial results of all, or clears the words for
//! the next launch. So the atomic releases the accesses before it, and acquires for the accesses
//! that depend on its result. A ticket needs neither, because no other CTA accesses the numbered
//! item.

use super::dependents::Dependents;
use super::global_words::{GlobalWord, Pointers};
use super::{OpSite, RuleContext};
use std::ops::Range;
use warpline_ir::{
    AccessKind, Block, MemoryAddress, MemoryOrder, MemoryRegion, Op, Operand, StmtKind,
};

/// A claim.
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
        let touched = touched(cx, pointers);
        atomics
            .filter_map(|(op, order)| claim(cx, op, order, &touched))
            .collect()
    }
}

/// An atomic on global memory that returns the old value.
fn atomic<'a, 'k>(op: &'a OpSite<'k>) -> Option<(&'a OpSite<'k>, MemoryOrder)> {
    match op.op {
        Op::Atomic(o) if matches!(o.at, MemoryAddress::Global { .. }) => Some((op, o.order)),
        _ => None,
    }
}

/// An access of global memory.
pub(super) struct Touched {
    pub(super) op: usize,
    pub(super) addr: Operand,
    pub(super) spot: GlobalWord,
    access: AccessKind,
}

impl Touched {
    /// Does the order of the two accesses matter?
    pub(super) fn conflicts(&self, other: &Self) -> bool {
        let alike = self.access == other.access && self.access != AccessKind::Write;
        !alike && self.spot.may_be(other.spot)
    }
}

/// Accesses to global memory at a known parameter and offset.
pub(super) fn touched(cx: &RuleContext, pointers: &Pointers) -> Vec<Touched> {
    (cx.ops.iter())
        .flat_map(|op| accesses(op, pointers))
        .collect()
}

fn accesses(op: &OpSite, pointers: &Pointers) -> impl Iterator<Item = Touched> {
    op.facts.touches.iter().filter_map(|t| {
        let (addr, offset) = match t.memory {
            MemoryRegion::PerLane(MemoryAddress::Global { addr, offset }, _) => (addr, offset),
            MemoryRegion::Global(addr, _) => (addr, 0),
            _ => return None,
        };
        Some(Touched {
            op: op.id,
            addr,
            spot: pointers.at(addr, offset)?,
            access: t.access,
        })
    })
}

/// Returns the claim that an atomic makes, if it is one.
fn claim(cx: &RuleContext, op: &OpSite, order: MemoryOrder, touched: &[Touched]) -> Option<Claim> {
    let follows = Dependents::of(cx, |o| o.id == op.id);
    let places = Places::of(cx, &follows);
    let may_come_before = |x: &&Touched| {
        let own = cx.ops[x.op].site.role == op.site.role;
        !places.guarded[x.op] && (!own || x.op < op.id || places.share_loop(x.op, op.id))
    };
    // If the address depends on the result, no other CTA accesses these bytes.
    let (mut before, mut after) = (None, Vec::new());
    for y in touched {
        if !places.guarded[y.op] || follows.operand(y.addr) {
            continue;
        }
        let met = touched.iter().filter(|x| x.conflicts(y));
        if let Some(x) = met.filter(may_come_before).map(|x| x.op).next() {
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

/// The position of ops in branches and loops, by op index.
pub(super) struct Places {
    /// Does the result of the atomic decide whether the op runs?
    pub(super) guarded: Vec<bool>,
    /// The ops inside each loop.
    loops: Vec<Range<usize>>,
}

impl Places {
    /// Are two ops in the same loop?
    pub(super) fn share_loop(&self, a: usize, b: usize) -> bool {
        let both = |l: &Range<usize>| l.contains(&a) && l.contains(&b);
        self.loops.iter().any(both)
    }

    pub(super) fn of(cx: &RuleContext, follows: &Dependents) -> Self {
        let mut places = Self {
            guarded: Vec::with_capacity(cx.ops.len()),
            loops: Vec::new(),
        };
        let kernel = cx.kernel;
        let bodies = kernel.roles.iter().map(|r| &r.body);
        for block in std::iter::once(&kernel.prologue)
            .chain(bodies)
            .chain([&kernel.epilogue])
        {
            places.block(block, follows, false);
        }
        places
    }

    fn block(&mut self, block: &Block, follows: &Dependents, guarded: bool) {
        for s in &block.0 {
            let first = self.guarded.len();
            match &s.kind {
                StmtKind::Op(_) => self.guarded.push(guarded),
                StmtKind::If {
                    cond, then, other, ..
                } => {
                    let guarded = guarded || follows.reg(*cond);
                    self.block(then, follows, guarded);
                    self.block(other, follows, guarded);
                }
                StmtKind::Elect { body } => self.block(body, follows, guarded),
                StmtKind::For { from, to, body, .. } => {
                    let guarded = guarded || follows.operand(*from) || follows.operand(*to);
                    self.block(body, follows, guarded);
                    self.loops.push(first..self.guarded.len());
                }
                StmtKind::While { head, cond, body } => {
                    let guarded = guarded || follows.reg(*cond);
                    self.block(head, follows, guarded);
                    self.block(body, follows, guarded);
                    self.loops.push(first..self.guarded.len());
                }
            }
        }
    }
}
