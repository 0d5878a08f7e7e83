//! Status words: the state of each warp in host-visible memory.
//!
//! Each warp of the first [`MAX_CTAS`] CTAs has one 64-bit word, written atomically, so the host never
//! reads a partial word:
//!
//! ```text
//! bits  0..8   state
//! bits  8..16  parity
//! bits 16..32  site
//! bits 32..64  index of the barrier
//! ```
//!
//! All active lanes write the same word to the same address. No lane is elected, so a status write
//! between two wgmmas needs no branch.

use crate::emit::Emitter;
use warpline_ir::ops::arith::MadWide;
use warpline_ir::ops::atomic::StrongStore;
use warpline_ir::ops::bits::{Or, Shl, Shr};
use warpline_ir::ops::convert::Cvt;
use warpline_ir::{
    Axis, MemoryAddress, MemoryOrder, Operand, ParamId, RegId, Scope, Special, Type,
};

/// The maximum number of CTAs with status words. The warps of all other CTAs write to one row that
/// is never read.
pub(crate) const MAX_CTAS: u32 = 4096;

/// Bytes of a status word.
pub(crate) const WORD_BYTES: u32 = 8;

/// The state of a warp.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// The warp runs or has not started.
    Running,
    /// The warp is in a wait without a timeout.
    Waiting,
    /// A wait of the warp timed out.
    TimedOut,
    /// The warp finished.
    Done,
}

impl State {
    const ALL: [State; 4] = [State::Running, State::Waiting, State::TimedOut, State::Done];
}

/// A decoded status word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WarpStatus {
    pub(crate) state: State,
    pub(crate) parity: u32,
    pub(crate) site: u16,
    pub(crate) index: u32,
}

impl WarpStatus {
    /// Decodes a word; `None` if its state is invalid.
    pub(crate) fn decode(word: u64) -> Option<Self> {
        let state = *State::ALL.get(word as u8 as usize)?;
        Some(Self {
            state,
            parity: u32::from((word >> 8) as u8),
            site: (word >> 16) as u16,
            index: (word >> 32) as u32,
        })
    }
}

/// The status table: its parameter, and the warps per CTA.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StatusTable {
    pub(crate) param: ParamId,
    pub(crate) warps: u32,
}

impl StatusTable {
    /// Emits a write of the warp's status: a state at a site.
    pub(crate) fn write(
        &self,
        e: &mut Emitter<'_>,
        state: State,
        site: u16,
        index: Operand,
        parity: Operand,
    ) {
        let src = status_word(e, state, site, index, parity);
        let addr = self.address(e).into();
        e.op(StrongStore {
            ty: Type::U64,
            src,
            at: MemoryAddress::Global { addr, offset: 0 },
            order: MemoryOrder::relaxed(Scope::Sys),
        });
    }

    /// Emits a write of a state without a site.
    pub(crate) fn write_state(&self, e: &mut Emitter<'_>, state: State) {
        self.write(e, state, 0, Operand::Imm(0), Operand::Imm(0));
    }

    /// Emits the address of the warp's status word. It is recomputed for each write, because some
    /// roles have no register to spare for it.
    fn address(&self, e: &mut Emitter<'_>) -> RegId {
        let [x, y, z] = [Axis::X, Axis::Y, Axis::Z].map(|a| e.special(Special::CtaId(a)));
        let [nx, ny] = [Axis::X, Axis::Y].map(|a| e.special(Special::GridDim(a)));
        let row = e.mad(z, ny, y);
        let row = e.mad(row, nx, x);
        let row = e.min(row, MAX_CTAS);
        let tid = e.special(Special::Tid);
        let warp = e.reg(Type::U32);
        e.op(Shr {
            ty: Type::U32,
            dst: warp,
            a: tid.into(),
            b: Operand::imm(5u32),
        });
        let index = e.mad(row, Operand::imm(self.warps), warp);
        let (table, address) = (e.read_pointer(self.param), e.reg(Type::U64));
        e.op(MadWide {
            ty: Type::U32,
            dst: address,
            a: index.into(),
            b: Operand::imm(WORD_BYTES),
            c: table.into(),
        });
        address
    }
}

/// Emits the status word.
fn status_word(
    e: &mut Emitter<'_>,
    state: State,
    site: u16,
    index: Operand,
    parity: Operand,
) -> Operand {
    let fixed = Operand::Imm(state as u64 | u64::from(site) << 16);
    let parity = shift_left(e, parity, 8);
    let index = shift_left(e, index, 32);
    let low = bit_or(e, fixed, parity);
    bit_or(e, low, index)
}

/// Emits a `u32` shifted left in 64 bits.
fn shift_left(e: &mut Emitter<'_>, o: Operand, by: u32) -> Operand {
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

/// Emits the OR of two values.
fn bit_or(e: &mut Emitter<'_>, a: Operand, b: Operand) -> Operand {
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
    fn a_constant_status_is_one_immediate_and_round_trips() {
        let mut regs = Vec::new();
        let mut e = Emitter::new(&mut regs, None, Loc::default());
        let [index, parity] = [7u32, 1].map(Operand::imm);
        let word = status_word(&mut e, State::TimedOut, 513, index, parity);
        assert!(e.finish().is_empty());
        let status = WarpStatus::decode(word.as_imm().unwrap()).unwrap();
        let expected = WarpStatus {
            state: State::TimedOut,
            parity: 1,
            site: 513,
            index: 7,
        };
        assert_eq!(status, expected);
    }

    #[test]
    fn an_unknown_word_is_rejected() {
        assert_eq!(WarpStatus::decode(0).unwrap().state, State::Running);
        assert_eq!(WarpStatus::decode(u64::MAX), None);
    }
}
