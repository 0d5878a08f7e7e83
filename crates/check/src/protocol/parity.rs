//! Parity symmetry: a state in which some mbarriers are one phase further, with the matching
//! parities flipped, equals the state before.
//!
//! A phase matters only through its parity and relative to the happens-before facts about it. If
//! all mbarriers of some arrays advance by one phase, and all registers that hold their parities
//! flip, the same events follow. This module finds such arrays and registers: a *family*.
//!
//! A register belongs to a family if a wait on one of the arrays takes its parity from the
//! register, or if another register of the family is computed from it. The program may only copy
//! such a register, select between two of them, flip it by a number outside of the family, and wait
//! with it. An assignment of a constant outside of all loops breaks the symmetry, so a warp that
//! has not reached it keeps states apart.

use super::code::{Act, Code, Program};
use super::slots::Slots;
use super::state::{Frame, State, Status, Warp};
use super::value::{Held, Val};
use super::world::World;
use crate::facts::Facts;
use warpline_ir::{Kernel, Mask, Op, Operand, RegId, SyncOp};

/// The families of a kernel.
#[derive(Default)]
pub(super) struct Parities {
    /// By mbarrier array: its family.
    arrays: Vec<Option<usize>>,
    /// By role and slot: the family of the register there.
    slots: Vec<Vec<Option<usize>>>,
    /// By family: one of its mbarriers.
    first: Vec<usize>,
    /// By family and role: the last step that sets a register of it to a constant.
    set: Vec<Vec<Option<u32>>>,
}

/// What is found of registers and arrays on the way.
struct Search<'p, 'k> {
    programs: &'p [Program<'k>],
    arrays: usize,
    /// By register: is it a parity?
    parity: Vec<bool>,
    /// By array, then by register: one that is in the same family, or itself.
    with: Vec<usize>,
    /// By array, then by register: does something else happen to it?
    bad: Vec<bool>,
}

impl Parities {
    pub(super) fn of(
        kernel: &Kernel,
        programs: &[Program<'_>],
        slots: &Slots,
        first_bar: &[u32],
    ) -> Self {
        let (arrays, regs) = (kernel.barriers.len(), kernel.regs.len());
        let mut search = Search {
            programs,
            arrays,
            parity: vec![false; regs],
            with: (0..arrays + regs).collect(),
            bad: vec![false; arrays + regs],
        };
        search.mark();
        search.refuse();
        search.families(slots, first_bar)
    }
}

impl<'k> Search<'_, 'k> {
    fn acts(&self) -> impl Iterator<Item = &Act<'k>> {
        let steps = self.programs.iter().flat_map(|p| &p.code);
        steps.filter_map(|c| match c {
            Code::Act(a) if !a.idle => Some(a),
            _ => None,
        })
    }

    fn reg(&self, r: RegId) -> usize {
        self.arrays + r.index()
    }

    fn is(&self, o: Operand) -> bool {
        o.as_reg().is_some_and(|r| self.parity[r.index()])
    }

    fn root(&self, mut i: usize) -> usize {
        while self.with[i] != i {
            i = self.with[i];
        }
        i
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.with[a] = b;
        self.bad[b] |= self.bad[a];
    }

    /// Marks what waits take a parity from, and what that follows from.
    fn mark(&mut self) {
        let mut joins = Vec::new();
        for a in self.acts() {
            for s in &Facts::of(a.op).syncs {
                if let SyncOp::Wait { bar, parity, .. } = s
                    && let Some(r) = parity.as_reg()
                {
                    joins.push((bar.bar.index(), r));
                }
            }
        }
        while !joins.is_empty() {
            for (to, r) in std::mem::take(&mut joins) {
                self.parity[r.index()] = true;
                self.join(to, self.reg(r));
            }
            for a in self.acts() {
                for &d in a.defs.iter().filter(|d| self.parity[d.index()]) {
                    let found = sources(a.op).into_iter().filter_map(|o| o.as_reg());
                    let new = found.filter(|r| self.root(self.reg(*r)) != self.root(self.reg(d)));
                    joins.extend(new.map(|r| (self.reg(d), r)));
                }
            }
        }
    }

    /// Refuses what else happens to parities, and waits by other numbers.
    fn refuse(&mut self) {
        let mut bad = Vec::new();
        for a in self.acts() {
            let facts = Facts::of(a.op);
            let mut allowed: Vec<Operand> = Vec::new();
            for s in &facts.syncs {
                match s {
                    SyncOp::Wait { bar, parity, .. } => {
                        let mut named = false;
                        bar.operands(&mut |o| named |= self.is(o));
                        match self.is(*parity) && !named {
                            true => allowed.push(*parity),
                            false => bad.push(bar.bar.index()),
                        }
                    }
                    SyncOp::Test { bar, .. } | SyncOp::Inval { bar } => bad.push(bar.bar.index()),
                    _ => {}
                }
            }
            let kept = a.defs.iter().any(|d| self.parity[d.index()]);
            if kept {
                let fine = match a.op {
                    // A constant is looked at where it is set.
                    Op::Mov(o) => o.src.as_imm().is_some() || self.is(o.src),
                    Op::Select(o) => self.is(o.a) && self.is(o.b),
                    Op::Xor(o) => self.is(o.a) != self.is(o.b),
                    _ => false,
                };
                match fine {
                    true => allowed.extend(sources(a.op)),
                    false => bad.extend(a.defs.iter().map(|&d| self.reg(d))),
                }
            }
            let used = facts
                .uses()
                .chain(a.reads.iter().filter_map(|o| o.as_reg()));
            let wrong = used.filter(|&r| !allowed.contains(&Operand::Reg(r)));
            bad.extend(wrong.map(|r| self.reg(r)));
        }
        for c in self.programs.iter().flat_map(|p| &p.code) {
            if let Code::For {
                var,
                from,
                to,
                step,
                ..
            } = c
            {
                let read = [from, to, step].into_iter().filter_map(|o| o.as_reg());
                bad.extend(read.chain([*var]).map(|r| self.reg(r)));
            }
        }
        for i in bad {
            let root = self.root(i);
            self.bad[root] = true;
        }
    }

    fn families(mut self, slots: &Slots, first_bar: &[u32]) -> Parities {
        let roles = self.programs.len();
        // Constants, by role, register and step; in a loop they are set again and again.
        let mut set = Vec::new();
        for (role, p) in self.programs.iter().enumerate() {
            let mut loops = 0u32;
            for (at, c) in (0..).zip(&p.code) {
                match c {
                    Code::For { .. } | Code::While { .. } => loops += 1,
                    Code::ForNext { .. } | Code::WhileNext { .. } => {
                        loops = loops.saturating_sub(1)
                    }
                    Code::Act(a) => {
                        if let Op::Mov(o) = a.op
                            && o.src.as_imm().is_some()
                            && self.parity[o.dst.index()]
                        {
                            let root = self.root(self.reg(o.dst));
                            self.bad[root] |= loops > 0;
                            set.push((root, role, at));
                        }
                    }
                    _ => {}
                }
            }
        }
        let mut found = Parities {
            arrays: vec![None; self.arrays],
            slots: vec![vec![None; slots.all as usize]; roles],
            ..Parities::default()
        };
        let mut roots: Vec<usize> = Vec::new();
        for (array, &bar) in first_bar.iter().enumerate() {
            let root = self.root(array);
            // Nobody waits for it by a parity, or not by that alone.
            if root == array && self.with.iter().filter(|&&w| w == array).count() == 1
                || self.bad[root]
            {
                continue;
            }
            let family = roots.iter().position(|&r| r == root).unwrap_or_else(|| {
                roots.push(root);
                found.first.push(bar as usize);
                found.set.push(vec![None; roles]);
                roots.len() - 1
            });
            found.arrays[array] = Some(family);
        }
        for (root, role, at) in set {
            if let Some(family) = roots.iter().position(|&r| r == root) {
                let last = &mut found.set[family][role];
                *last = (*last).max(Some(at));
            }
        }
        for (role, p) in self.programs.iter().enumerate() {
            let acts = p.code.iter().filter_map(|c| match c {
                Code::Act(a) => Some(a),
                _ => None,
            });
            for &d in acts.flat_map(|a| &a.defs) {
                if self.parity[d.index()]
                    && let Some(slot) = slots.of(d)
                {
                    let root = self.root(self.reg(d));
                    found.slots[role][slot as usize] = roots.iter().position(|&r| r == root);
                }
            }
        }
        found
    }
}

/// What a parity may follow from.
fn sources(op: &Op) -> Vec<Operand> {
    match op {
        Op::Mov(o) => vec![o.src],
        Op::Select(o) => vec![o.a, o.b],
        // It is turned by what comes second.
        Op::Xor(o) if o.a.as_reg().is_some() => vec![o.a],
        Op::Xor(o) => vec![o.b],
        _ => Vec::new(),
    }
}

/// How far each family is turned in a state.
pub(super) struct Turned(Vec<u32>);

impl Parities {
    /// How far each family is turned: so that the phase of one of its mbarriers is even.
    pub(super) fn turned(&self, st: &State) -> Turned {
        let set = |family: usize| {
            let yet = |w: &Warp| {
                let last = self.set[family][w.role as usize];
                w.status != Status::Done && last.is_some_and(|at| w.pc <= at)
            };
            st.warps.iter().any(yet)
        };
        let by = |(family, &bar): (usize, &usize)| match set(family) {
            true => 0,
            false => st.bars[bar].phase & 1,
        };
        Turned(self.first.iter().enumerate().map(by).collect())
    }

    /// The parity of an mbarrier of an array, in a state that is turned.
    pub(super) fn of_phase(&self, turned: &Turned, array: usize, phase: u32) -> u32 {
        phase & 1 ^ self.arrays[array].map_or(0, |f| turned.0[f])
    }
}

impl World<'_, '_> {
    /// What a warp holds in a slot, turned where that is a parity, and only in the lanes that may
    /// use it.
    pub(super) fn turned(&self, turned: &Turned, w: &Warp, slot: u32, held: &Held) -> Option<Val> {
        self.family(w, slot)?;
        let by = self.turned_by(turned, w, slot);
        let lanes = self.lanes_that_use(w, slot);
        let numbers = held.val.numbers()?;
        let turn = |l: usize| match lanes >> l & 1 {
            0 => 0,
            _ => numbers[l] ^ by,
        };
        Some(Val::of(&std::array::from_fn(turn), lanes))
    }

    /// The family of what a warp holds in a slot.
    fn family(&self, w: &Warp, slot: u32) -> Option<usize> {
        let slots = &self.env.parities.slots[w.role as usize];
        slots.get(slot as usize).copied().flatten()
    }

    /// How far what a warp holds in a slot is turned.
    pub(super) fn turned_by(&self, turned: &Turned, w: &Warp, slot: u32) -> u64 {
        self.family(w, slot).map_or(0, |f| u64::from(turned.0[f]))
    }

    /// The lanes that may use what they hold in a slot: those that run, if the others, who wait
    /// for them, use it no more.
    fn lanes_that_use(&self, w: &Warp, slot: u32) -> Mask {
        let live = &self.env.programs[w.role as usize].live;
        let others = w.frames.iter().any(|f| {
            let (saved, end) = match f {
                Frame::If { other: 1.., .. } => return true,
                Frame::If { saved, end, .. }
                | Frame::Elect { saved, end }
                | Frame::Loop { saved, end, .. } => (*saved, *end),
            };
            saved != w.active && live[end as usize].has(slot)
        });
        if others { Mask::MAX } else { w.active }
    }
}
