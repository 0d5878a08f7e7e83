//! The registers and tiles that depend on a value.

use super::{OpSite, RuleContext};
use crate::bits::Bits;
use warpline_ir::{AccessKind, MemoryAccess, MemoryAddress, MemoryRegion, Operand, RegId, TileId};

/// The registers and tiles that depend on the results of some ops.
pub(super) struct Dependents {
    regs: Bits,
    tiles: Bits,
}

impl Dependents {
    /// Returns the dependents of the ops that `from` selects.
    pub(super) fn of(cx: &RuleContext, from: impl Fn(&OpSite) -> bool) -> Self {
        let mut all = Self {
            regs: Bits::new(cx.kernel.regs.len()),
            tiles: Bits::new(cx.kernel.tiles.len()),
        };
        while cx
            .ops
            .iter()
            .fold(false, |more, op| all.pass(op, from(op)) | more)
        {}
        all
    }

    /// Does a register depend on the value?
    pub(super) fn reg(&self, r: RegId) -> bool {
        self.regs.contains(r.index())
    }

    /// Does an operand depend on the value?
    pub(super) fn operand(&self, o: Operand) -> bool {
        o.as_reg().is_some_and(|r| self.reg(r))
    }

    /// Propagates through an op; returns whether that added a dependent.
    fn pass(&mut self, op: &OpSite, first: bool) -> bool {
        let facts = &op.facts;
        let reads = |t: &MemoryAccess| t.access != AccessKind::Write;
        let mut kept = facts.touches.iter().filter(|t| reads(t)).filter_map(tile);
        let follows = first
            || facts.named_reads().any(|r| self.reg(r))
            || kept.any(|t| self.tiles.contains(t.index()));
        if !follows {
            return false;
        }
        let mut more = false;
        for r in &facts.defs {
            more |= add(&mut self.regs, r.index());
        }
        let writes = |t: &&MemoryAccess| t.access != AccessKind::Read;
        for t in facts.touches.iter().filter(writes).filter_map(tile) {
            more |= add(&mut self.tiles, t.index());
        }
        more
    }
}

/// Adds a number; returns whether it was missing.
fn add(to: &mut Bits, i: usize) -> bool {
    let missing = !to.contains(i);
    to.insert(i);
    missing
}

/// Returns the tile of an access.
fn tile(t: &MemoryAccess) -> Option<TileId> {
    match &t.memory {
        MemoryRegion::PerLane(MemoryAddress::Shared(p), _)
        | MemoryRegion::Shared(p, _)
        | MemoryRegion::MatrixRows(p, _) => Some(p.tile),
        MemoryRegion::View(v) => Some(v.tile),
        _ => None,
    }
}
