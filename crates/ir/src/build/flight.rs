//! What the builder knows of warpgroup products: which sums are zero so far,
//! and which groups were issued after which.

use super::state::State;
use crate::loc::Loc;
use crate::ops::arith::Mov;
use crate::program::{Stmt, StmtKind};
use crate::types::Type;
use crate::value::{Operand, RegId};

/// The accumulators of a kernel, and the groups of products in program order.
#[derive(Default)]
pub(crate) struct Flight {
    sums: Vec<Sums>,
    groups: Vec<Group>,
}

/// One accumulator.
struct Sums {
    regs: Vec<RegId>,
    /// Where it was made: a block, and the place in it.
    scope: u32,
    index: usize,
    loc: Loc,
    /// Its registers hold numbers.
    begun: bool,
}

/// One committed group of products.
struct Group {
    acc: u32,
    scope: u32,
}

impl State {
    fn scope(&self) -> u32 {
        self.blocks.last().map_or(0, |b| b.scope)
    }

    /// A new accumulator: nothing is written yet.
    pub(super) fn new_sums(&mut self, regs: Vec<RegId>, loc: Loc) -> u32 {
        let index = self.blocks.last().map_or(0, |b| b.stmts.len());
        let sums = Sums {
            regs,
            scope: self.scope(),
            index,
            loc,
            begun: false,
        };
        self.flight.sums.push(sums);
        self.flight.sums.len() as u32 - 1
    }

    /// Before a product: may it overwrite? The first product may if nothing
    /// can come between it and the accumulator's birth; otherwise the sums
    /// are set to zero there.
    pub(super) fn product_overwrites(&mut self, acc: u32) -> bool {
        let sums = &self.flight.sums[acc as usize];
        if !sums.begun && sums.scope == self.scope() {
            self.flight.sums[acc as usize].begun = true;
            return true;
        }
        self.zero_sums(acc);
        false
    }

    /// Has the sums start at zero, unless a product wrote them first.
    pub(super) fn zero_sums(&mut self, acc: u32) {
        let sums = &mut self.flight.sums[acc as usize];
        if std::mem::replace(&mut sums.begun, true) {
            return;
        }
        let (scope, index, loc, n) = (sums.scope, sums.index, sums.loc, sums.regs.len());
        let zeros: Vec<Stmt> = sums
            .regs
            .iter()
            .map(|&dst| {
                let (ty, src) = (Type::F32, Operand::imm(0.0f32));
                let kind = StmtKind::Op(Mov { ty, dst, src }.into());
                Stmt { kind, loc }
            })
            .collect();
        // A block that is closed has taken its registers with it: their use is refused elsewhere.
        let Some(block) = self.blocks.iter_mut().find(|b| b.scope == scope) else {
            return;
        };
        block.stmts.splice(index..index, zeros);
        for other in &mut self.flight.sums {
            if other.scope == scope && other.index > index {
                other.index += n;
            }
        }
    }

    /// A group of an accumulator's products was committed.
    pub(super) fn committed(&mut self, acc: u32) {
        let scope = self.scope();
        self.flight.groups.push(Group { acc, scope });
    }

    /// Groups committed so far, in program order.
    pub(super) fn groups(&self) -> usize {
        self.flight.groups.len()
    }

    /// How many groups are surely younger than the accumulator's last: those
    /// written after it in the same block. Where another block comes between, none.
    pub(super) fn younger_groups(&self, acc: u32) -> u32 {
        let groups = &self.flight.groups;
        match groups.iter().rposition(|g| g.acc == acc) {
            Some(last) if self.is_straight(last) => (groups.len() - 1 - last) as u32,
            _ => 0,
        }
    }

    /// How many groups were committed since there were `then`, if all in this very block.
    pub(super) fn groups_since(&self, then: usize) -> u32 {
        match self.is_straight(then) {
            true => (self.groups() - then) as u32,
            false => 0,
        }
    }

    /// Were all groups from `first` on written in the block being written?
    fn is_straight(&self, first: usize) -> bool {
        let scope = self.scope();
        let tail = self.flight.groups.get(first..).unwrap_or_default();
        tail.iter().all(|g| g.scope == scope)
    }
}
