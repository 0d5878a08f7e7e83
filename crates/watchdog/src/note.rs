//! Notes: what each warp says of itself in memory that the host can see.
//!
//! A note is one word of 64 bits per warp of the first [`CTAS`] CTAs, written
//! in one piece, so that the host never reads half of one:
//!
//! ```text
//! bits  0..8   state
//! bits  8..16  parity
//! bits 16..32  site
//! bits 32..64  index of the barrier
//! ```
//!
//! All active lanes write the same word to the same place: no lane need be
//! elected, and a note between two products costs no branch.

use crate::emit::Emit;
use warpline_ir::ops::arith::MadWide;
use warpline_ir::ops::atomic::StrongStore;
use warpline_ir::ops::bits::{Or, Shl, Shr};
use warpline_ir::ops::convert::Cvt;
use warpline_ir::{At, Axis, MemoryOrder, Operand, ParamId, RegId, Scope, Special, Type};

/// CTAs that have notes. The warps of all others write to one row that nobody reads.
pub(crate) const CTAS: u32 = 4096;

/// Bytes of a note.
pub(crate) const BYTES: u32 = 8;

/// How a warp stands to its site.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// It runs, or has not started.
    Running,
    /// It is in a wait that it cannot leave.
    Waiting,
    /// It gave a wait up.
    Left,
    /// It came to its end.
    Done,
}

impl State {
    const ALL: [State; 4] = [State::Running, State::Waiting, State::Left, State::Done];
}

/// A note that was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Note {
    pub(crate) state: State,
    pub(crate) parity: u32,
    pub(crate) site: u16,
    pub(crate) index: u32,
}

impl Note {
    /// A note from its word; `None` if it is none that a kernel writes.
    pub(crate) fn read(word: u64) -> Option<Self> {
        let state = *State::ALL.get(word as u8 as usize)?;
        Some(Self {
            state,
            parity: u32::from((word >> 8) as u8),
            site: (word >> 16) as u16,
            index: (word >> 32) as u32,
        })
    }
}

/// Where a kernel writes notes, and for how many warps per CTA.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Notes {
    pub(crate) param: ParamId,
    pub(crate) warps: u32,
}

impl Notes {
    /// Writes the warp's note: a state at a site.
    pub(crate) fn write(
        &self,
        e: &mut Emit<'_>,
        state: State,
        site: u16,
        index: Operand,
        parity: Operand,
    ) {
        let src = word(e, state, site, index, parity);
        let addr = self.place(e).into();
        e.op(StrongStore {
            ty: Type::U64,
            src,
            at: At::Global { addr, offset: 0 },
            order: MemoryOrder::relaxed(Scope::Sys),
        });
    }

    /// Writes a state that is of no site.
    pub(crate) fn state(&self, e: &mut Emit<'_>, state: State) {
        self.write(e, state, 0, Operand::Imm(0), Operand::Imm(0));
    }

    /// The address of the warp's note. It is formed anew each time: a register
    /// for it would be taken from roles that have none to spare.
    fn place(&self, e: &mut Emit<'_>) -> RegId {
        let [x, y, z] = [Axis::X, Axis::Y, Axis::Z].map(|a| e.special(Special::CtaId(a)));
        let [nx, ny] = [Axis::X, Axis::Y].map(|a| e.special(Special::GridDim(a)));
        let row = e.mad(z, ny, y);
        let row = e.mad(row, nx, x);
        let row = e.min(row, CTAS);
        let tid = e.special(Special::Tid);
        let warp = e.reg(Type::U32);
        e.op(Shr {
            ty: Type::U32,
            dst: warp,
            a: tid.into(),
            b: Operand::imm(5u32),
        });
        let slot = e.mad(row, Operand::imm(self.warps), warp);
        let (notes, at) = (e.address(self.param), e.reg(Type::U64));
        e.op(MadWide {
            ty: Type::U32,
            dst: at,
            a: slot.into(),
            b: Operand::imm(BYTES),
            c: notes.into(),
        });
        at
    }
}

/// The word of a note.
fn word(e: &mut Emit<'_>, state: State, site: u16, index: Operand, parity: Operand) -> Operand {
    let fixed = Operand::Imm(state as u64 | u64::from(site) << 16);
    let parity = shifted(e, parity, 8);
    let index = shifted(e, index, 32);
    let low = either(e, fixed, parity);
    either(e, low, index)
}

/// A `u32` moved up in 64 bits.
fn shifted(e: &mut Emit<'_>, o: Operand, by: u32) -> Operand {
    let src = match o {
        Operand::Imm(x) => return Operand::Imm(x << by),
        Operand::Reg(_) => o,
    };
    let (wide, dst) = (e.reg(Type::U64), e.reg(Type::U64));
    e.op(Cvt {
        from: Type::U32,
        to: Type::U64,
        dst: wide,
        src,
    });
    e.op(Shl {
        ty: Type::U64,
        dst,
        a: wide.into(),
        b: Operand::imm(by),
    });
    dst.into()
}

/// The bits of both.
fn either(e: &mut Emit<'_>, a: Operand, b: Operand) -> Operand {
    if let (Operand::Imm(a), Operand::Imm(b)) = (a, b) {
        return Operand::Imm(a | b);
    }
    let (ty, dst) = (Type::U64, e.reg(Type::U64));
    e.op(Or { ty, dst, a, b });
    dst.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpline_ir::Loc;

    #[test]
    fn a_constant_note_is_a_constant_and_reads_back() {
        let mut regs = Vec::new();
        let mut e = Emit::new(&mut regs, None, Loc::default());
        let [index, parity] = [7u32, 1].map(Operand::imm);
        let word = word(&mut e, State::Left, 513, index, parity);
        assert!(e.finish().is_empty());
        let note = Note::read(word.as_imm().unwrap()).unwrap();
        let want = Note {
            state: State::Left,
            parity: 1,
            site: 513,
            index: 7,
        };
        assert_eq!(note, want);
    }

    #[test]
    fn a_word_that_nobody_writes_is_no_note() {
        assert_eq!(Note::read(0).unwrap().state, State::Running);
        assert_eq!(Note::read(u64::MAX), None);
    }
}
