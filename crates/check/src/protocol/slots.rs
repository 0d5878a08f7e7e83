//! The storage of the registers of a warp.
//!
//! Most registers are written and read before the warp can block. They have temporary slots. Only
//! the other registers are part of a state.

use super::bits::Bits;
use super::code::{Code, Program};
use super::slice::{Slice, written};
use super::value::Held;
use super::world::World;
use std::rc::Rc;
use warpline_ir::{Kernel, RegId};

/// The places of registers: first those that are kept with a warp.
pub(super) struct Slots {
    /// By register: its place, or none if it does not matter.
    of: Vec<Option<u32>>,
    /// Places that are kept.
    pub(super) kept: u32,
    pub(super) all: u32,
}

impl Slots {
    /// Places for the registers that matter.
    ///
    /// A warp has one role, so what different roles write for themselves has the same places.
    pub(super) fn new(kernel: &Kernel, slice: &Slice) -> Self {
        let mut of = vec![None; slice.regs.len()];
        let mut writers = vec![0u32; slice.regs.len()];
        let bodies: Vec<_> = kernel.roles.iter().map(|r| written(&r.body)).collect();
        for r in bodies.iter().flatten() {
            writers[r.index()] += 1;
        }
        for block in [&kernel.prologue, &kernel.epilogue] {
            written(block).iter().for_each(|r| writers[r.index()] = 0);
        }
        let mut common = 0;
        for r in (0..of.len()).filter(|&r| slice.regs[r] && writers[r] != 1) {
            of[r] = Some(common);
            common += 1;
        }
        let mut all = common;
        for body in bodies {
            let mut own: Vec<_> = body.into_iter().map(RegId::index).collect();
            own.retain(|&r| slice.regs[r] && writers[r] == 1);
            own.sort_unstable();
            (common..)
                .zip(&own)
                .for_each(|(slot, &r)| of[r] = Some(slot));
            all = all.max(common + own.len() as u32);
        }
        Self { of, kept: all, all }
    }

    /// The place of a register, if it matters.
    pub(super) fn of(&self, r: RegId) -> Option<u32> {
        self.of[r.index()]
    }

    /// Puts those first that are used after a step at which a warp may stop, or that lanes which
    /// wait for others use: only they are kept.
    pub(super) fn order(&mut self, programs: &mut [Program<'_>]) {
        let mut kept = Bits::default();
        for p in programs.iter() {
            kept.join(&p.live[0]);
            for (i, c) in p.code.iter().enumerate() {
                if !p.plain[i] {
                    kept.join(&p.live[i]);
                }
                let after = match c {
                    Code::If { other, end, .. } => [*other, *end],
                    Code::For { end, .. } | Code::While { end, .. } | Code::Elect { end } => {
                        [*end, *end]
                    }
                    _ => continue,
                };
                after.iter().for_each(|&i| kept.join(&p.live[i as usize]));
                if let Code::For { var, .. } = c {
                    self.of(*var).into_iter().for_each(|s| kept.add(s));
                }
            }
        }
        let (first, rest): (Vec<u32>, Vec<u32>) = (0..self.all).partition(|&s| kept.has(s));
        let mut moved = vec![0; self.all as usize];
        for (to, &from) in (0..).zip(first.iter().chain(&rest)) {
            moved[from as usize] = to;
        }
        for slot in self.of.iter_mut().flatten() {
            *slot = moved[*slot as usize];
        }
        self.kept = first.len() as u32;
        for p in programs {
            for live in &mut p.live {
                let mut new = Bits::default();
                live.iter().for_each(|s| new.add(moved[s as usize]));
                *live = new;
            }
        }
    }
}

/// Registers that a warp needs only while it runs.
#[derive(Default)]
pub(super) struct Passing {
    held: Vec<Held>,
    nothing: Held,
    /// Those that it wrote.
    written: Vec<u32>,
}

impl World<'_, '_> {
    /// What the warp that runs holds in a place.
    pub(super) fn held_at(&self, slot: u32) -> &Held {
        match slot.checked_sub(self.env.slots.kept) {
            None => &self.st.warps[self.cur].regs[slot as usize],
            Some(i) => self
                .passing
                .held
                .get(i as usize)
                .unwrap_or(&self.passing.nothing),
        }
    }

    pub(super) fn held_at_mut(&mut self, slot: u32) -> &mut Held {
        let Some(i) = slot.checked_sub(self.env.slots.kept) else {
            let regs = &mut self.st.warps[self.cur].regs;
            return &mut Rc::make_mut(regs)[slot as usize];
        };
        let passing = &mut self.passing;
        if passing.held.len() <= i as usize {
            let all = self.env.slots.all - self.env.slots.kept;
            passing.held.resize(all as usize, Held::default());
        }
        passing.written.push(i);
        &mut passing.held[i as usize]
    }

    /// The warp runs: it has what it held when it stopped.
    pub(super) fn resume(&mut self) {
        for i in self.passing.written.drain(..) {
            self.passing.held[i as usize] = Held::default();
        }
        for (slot, held) in std::mem::take(&mut self.st.warps[self.cur].spilled) {
            *self.held_at_mut(slot) = held;
        }
    }

    /// The warp stops: what it still needs stays with it.
    pub(super) fn pause(&mut self) {
        if self.passing.written.is_empty() {
            return;
        }
        let w = &self.st.warps[self.cur];
        let live = &self.env.programs[w.role as usize].live[w.pc as usize];
        let from = self.env.slots.kept;
        let spilled = live.iter().filter(|&s| s >= from);
        let spilled = spilled.map(|s| (s, self.held_at(s).clone())).collect();
        self.st.warps[self.cur].spilled = spilled;
    }
}
