//! The operations of atomics and reductions.

use crate::lanes::Number;
use crate::ops::require_type;
use crate::types::{Bf16x2, F16x2, Type};
use half::{bf16, f16};

/// The operation of an atomic or reduction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AtomicOp {
    /// Addition; integers wrap, and `f32` in global memory flushes subnormals to zero.
    Add,
    /// Minimum.
    Min,
    /// Maximum.
    Max,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Increment; wraps to 0 if the old word is at least the operand.
    Inc,
    /// Decrement; becomes the operand if the old word is 0 or above the operand.
    Dec,
    /// Exchange.
    Exch,
    /// Compare and swap.
    Cas,
}

impl AtomicOp {
    /// All operations.
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

    /// Returns the name in PTX and in the text form.
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

    /// Returns the PTX operation; 16-bit float additions have `.noftz`.
    pub(super) fn ptx_op(self, ty: Type) -> &'static str {
        match ty {
            Type::F16 | Type::Bf16 | Type::F16x2 | Type::Bf16x2 if self == AtomicOp::Add => {
                "add.noftz"
            }
            _ => self.name(),
        }
    }

    /// Returns the PTX type suffix; bitwise operations, exchange and compare-and-swap are untyped.
    pub(super) fn suffix(self, ty: Type) -> &'static str {
        match self {
            // PTX has no signed 64-bit add; the unsigned one is equivalent.
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
        require_type(&format!("atomic {}", self.name()), ty, types)
    }

    /// Returns the new word. With `global`, `f32` additions flush subnormals to zero, as the L2 does.
    pub(super) fn apply(self, ty: Type, old: u64, new: u64, global: bool) -> u64 {
        let pick = |first: bool| if first { old } else { new };
        let less = match ty {
            Type::I32 => (old as i32) < new as i32,
            Type::I64 => (old as i64) < new as i64,
            _ => old < new,
        };
        match self {
            AtomicOp::Add => add(ty, old, new, global),
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

fn add(ty: Type, old: u64, new: u64, global: bool) -> u64 {
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
