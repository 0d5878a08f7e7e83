//! What follows from a value: the registers computed from it, and the tiles it is kept in.

use super::{Case, OpSite};
use crate::bits::Bits;
use warpline_ir::{Access, At, Memory, Operand, RegId, TileId, Touch};

/// Registers and tiles that hold what follows from the results of some ops.
pub(super) struct Follows {
    regs: Bits,
    tiles: Bits,
}

impl Follows {
    /// What follows from the ops that `from` names.
    pub(super) fn of(case: &Case, from: impl Fn(&OpSite) -> bool) -> Self {
        let mut all = Self {
            regs: Bits::new(case.kernel.regs.len()),
            tiles: Bits::new(case.kernel.tiles.len()),
        };
        while case
            .ops
            .iter()
            .fold(false, |more, op| all.pass(op, from(op)) | more)
        {}
        all
    }

    /// Does a register hold what follows?
    pub(super) fn reg(&self, r: RegId) -> bool {
        self.regs.contains(r.index())
    }

    /// Does an operand?
    pub(super) fn operand(&self, o: Operand) -> bool {
        o.as_reg().is_some_and(|r| self.reg(r))
    }

    /// Passes through an op; says whether that added anything.
    fn pass(&mut self, op: &OpSite, first: bool) -> bool {
        let facts = &op.facts;
        let reads = |t: &Touch| t.access != Access::Write;
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
        let writes = |t: &&Touch| t.access != Access::Read;
        for t in facts.touches.iter().filter(writes).filter_map(tile) {
            more |= add(&mut self.tiles, t.index());
        }
        more
    }
}

/// Adds a number; says whether it was missing.
fn add(to: &mut Bits, i: usize) -> bool {
    let missing = !to.contains(i);
    to.insert(i);
    missing
}

/// The tile of an access.
fn tile(t: &Touch) -> Option<TileId> {
    match &t.memory {
        Memory::At(At::Shared(p), _) | Memory::Run(p, _) | Memory::Rows(p, _) => Some(p.tile),
        Memory::View(v) => Some(v.tile),
        _ => None,
    }
}
