//! Atomics by whose value a CTA takes over what the others are done with.
//!
//! The last CTA to raise a counter adds up what all have left, or clears the
//! words for the next launch. So the atomic releases what was done before it,
//! and acquires it for what is done because of its value. A ticket needs
//! neither: what it numbers is nobody else's.

use super::follows::Follows;
use super::pointers::{Pointers, Spot};
use super::{Case, OpSite};
use std::ops::Range;
use warpline_ir::{Access, At, Block, Memory, MemoryOrder, Op, Operand, StmtKind};

/// Such an atomic.
pub(super) struct Claim {
    /// Its number among the ops.
    pub(super) op: usize,
    pub(super) order: MemoryOrder,
    /// An access before it that passes to who claims.
    pub(super) before: usize,
    /// The accesses of who claims.
    pub(super) after: Vec<usize>,
}

impl Claim {
    /// All claims of a kernel.
    pub(super) fn all(case: &Case, pointers: &Pointers) -> Vec<Self> {
        let mut atomics = case.ops.iter().filter_map(atomic).peekable();
        if atomics.peek().is_none() {
            return Vec::new();
        }
        let touched = touched(case, pointers);
        atomics
            .filter_map(|(op, order)| claim(case, op, order, &touched))
            .collect()
    }
}

/// An atomic of global memory that gives what was there.
fn atomic<'a, 'k>(op: &'a OpSite<'k>) -> Option<(&'a OpSite<'k>, MemoryOrder)> {
    match op.op {
        Op::Atomic(o) if matches!(o.at, At::Global { .. }) => Some((op, o.order)),
        _ => None,
    }
}

/// An access of global memory.
pub(super) struct Touched {
    pub(super) op: usize,
    pub(super) addr: Operand,
    pub(super) spot: Spot,
    access: Access,
}

impl Touched {
    /// Does it matter which of two comes first?
    pub(super) fn conflicts(&self, other: &Self) -> bool {
        let alike = self.access == other.access && self.access != Access::Write;
        !alike && self.spot.may_be(other.spot)
    }
}

/// Accesses to global memory at a known parameter and offset.
pub(super) fn touched(case: &Case, pointers: &Pointers) -> Vec<Touched> {
    (case.ops.iter())
        .flat_map(|op| accesses(op, pointers))
        .collect()
}

fn accesses(op: &OpSite, pointers: &Pointers) -> impl Iterator<Item = Touched> {
    op.facts.touches.iter().filter_map(|t| {
        let (addr, offset) = match t.memory {
            Memory::At(At::Global { addr, offset }, _) => (addr, offset),
            Memory::Global(addr, _) => (addr, 0),
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

/// The claim that an atomic makes, if it does.
fn claim(case: &Case, op: &OpSite, order: MemoryOrder, touched: &[Touched]) -> Option<Claim> {
    let follows = Follows::of(case, |o| o.id == op.id);
    let places = Places::of(case, &follows);
    let may_come_before = |x: &&Touched| {
        let own = case.ops[x.op].site.role == op.site.role;
        !places.guarded[x.op] && (!own || x.op < op.id || places.share_loop(x.op, op.id))
    };
    // Where the value says which bytes they are, they are nobody else's.
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

/// Where ops stand, by number.
pub(super) struct Places {
    /// Does what follows from the value decide whether it runs?
    pub(super) guarded: Vec<bool>,
    /// The ops inside of each loop.
    loops: Vec<Range<usize>>,
}

impl Places {
    /// Do two ops stand in a loop together?
    pub(super) fn share_loop(&self, a: usize, b: usize) -> bool {
        let both = |l: &Range<usize>| l.contains(&a) && l.contains(&b);
        self.loops.iter().any(both)
    }

    pub(super) fn of(case: &Case, follows: &Follows) -> Self {
        let mut places = Self {
            guarded: Vec::with_capacity(case.ops.len()),
            loops: Vec::new(),
        };
        let kernel = case.kernel;
        let bodies = kernel.roles.iter().map(|r| &r.body);
        for block in std::iter::once(&kernel.prologue)
            .chain(bodies)
            .chain([&kernel.epilogue])
        {
            places.block(block, follows, false);
        }
        places
    }

    fn block(&mut self, block: &Block, follows: &Follows, guarded: bool) {
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
