//! What an atomic does to the word in memory.

use crate::lanes::Number;
use crate::ops::only;
use crate::types::{Bf16x2, F16x2, Type};
use half::{bf16, f16};

/// What an atomic does to the word in memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AtomicOp {
    /// Sum; integers wrap. Of `f32` in global memory, subnormals count as zero.
    Add,
    /// The smaller.
    Min,
    /// The larger.
    Max,
    /// Bits of both.
    And,
    /// Bits of either.
    Or,
    /// Bits of one of the two.
    Xor,
    /// One more; 0 from the operand on.
    Inc,
    /// One less; the operand from 0, and from above it.
    Dec,
    /// The new word.
    Exch,
    /// The new word, if the old one is the one to compare with.
    Cas,
}

impl AtomicOp {
    /// All of them.
    pub const ALL: [AtomicOp; 10] = [
        AtomicOp::Add,
        AtomicOp::Min,
        AtomicOp::Max,
        AtomicOp::And,
        AtomicOp::Or,
        AtomicOp::Xor,
        AtomicOp::Inc,
        AtomicOp::Dec,
        AtomicOp::Exch,
        AtomicOp::Cas,
    ];

    /// The name in PTX and in text.
    pub const fn name(self) -> &'static str {
        match self {
            AtomicOp::Add => "add",
            AtomicOp::Min => "min",
            AtomicOp::Max => "max",
            AtomicOp::And => "and",
            AtomicOp::Or => "or",
            AtomicOp::Xor => "xor",
            AtomicOp::Inc => "inc",
            AtomicOp::Dec => "dec",
            AtomicOp::Exch => "exch",
            AtomicOp::Cas => "cas",
        }
    }

    /// The op with rounding, as PTX spells it.
    pub(super) fn spelled(self, ty: Type) -> &'static str {
        match ty {
            Type::F16 | Type::Bf16 | Type::F16x2 | Type::Bf16x2 if self == AtomicOp::Add => {
                "add.noftz"
            }
            _ => self.name(),
        }
    }

    /// The type suffix: of the number where it matters, else of the width.
    pub(super) fn suffix(self, ty: Type) -> &'static str {
        match self {
            // There is no signed 64-bit sum: it is the unsigned one.
            AtomicOp::Add if ty == Type::I64 => "u64",
            AtomicOp::And | AtomicOp::Or | AtomicOp::Xor | AtomicOp::Exch | AtomicOp::Cas => {
                ty.bits()
            }
            _ => ty.ptx(),
        }
    }

    pub(super) fn legal(self, ty: Type) -> Result<(), String> {
        use Type::*;
        let types: &[Type] = match self {
            AtomicOp::Add => &[U32, I32, U64, I64, F32, F16, Bf16, F16x2, Bf16x2],
            AtomicOp::Inc | AtomicOp::Dec => &[U32],
            AtomicOp::Exch => &[U32, I32, U64, I64, F32, F16x2, Bf16x2],
            AtomicOp::Cas => &[U16, F16, Bf16, U32, I32, U64, I64, F32, F16x2, Bf16x2],
            _ => &[U32, I32, U64, I64],
        };
        only(&format!("atomic {}", self.name()), ty, types)
    }

    /// The word after; `global` takes subnormal `f32`s for zero, as the L2 does.
    pub(super) fn apply(self, ty: Type, old: u64, new: u64, global: bool) -> u64 {
        let pick = |first: bool| if first { old } else { new };
        let less = match ty {
            Type::I32 => (old as i32) < new as i32,
            Type::I64 => (old as i64) < new as i64,
            _ => old < new,
        };
        match self {
            AtomicOp::Add => sum(ty, old, new, global),
            AtomicOp::Min => pick(less),
            AtomicOp::Max => pick(!less),
            AtomicOp::And => old & new,
            AtomicOp::Or => old | new,
            AtomicOp::Xor => old ^ new,
            AtomicOp::Inc if old >= new => 0,
            AtomicOp::Inc => old + 1,
            AtomicOp::Dec if old == 0 || old > new => new,
            AtomicOp::Dec => old - 1,
            AtomicOp::Exch | AtomicOp::Cas => new,
        }
    }
}

fn sum(ty: Type, old: u64, new: u64, global: bool) -> u64 {
    let flush = |x: f32| match global && x.is_subnormal() {
        true => 0f32.copysign(x),
        false => x,
    };
    let float = |bits: u64| flush(f32::from_bits(bits as u32));
    let (a, b) = (old as u32, new as u32);
    match ty {
        Type::F32 => flush(Number::add(float(old), float(new))).to_bits().into(),
        Type::F16 => Number::add(f16::from_bits(a as u16), f16::from_bits(b as u16))
            .to_bits()
            .into(),
        Type::Bf16 => Number::add(bf16::from_bits(a as u16), bf16::from_bits(b as u16))
            .to_bits()
            .into(),
        Type::F16x2 => Number::add(F16x2(a), F16x2(b)).0.into(),
        Type::Bf16x2 => Number::add(Bf16x2(a), Bf16x2(b)).0.into(),
        Type::U32 | Type::I32 => a.wrapping_add(b).into(),
        _ => old.wrapping_add(new),
    }
}
