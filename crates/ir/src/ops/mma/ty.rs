//! Element types of `mma` and `wgmma` operands.

use crate::types::{DType, Type};

/// The element type of A or B of a matrix instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MmaType {
    /// bfloat16.
    Bf16,
    /// IEEE binary16.
    F16,
    /// TensorFloat-32: 32 bits; the low 13 bits are ignored.
    Tf32,
    /// 8-bit float with 4 exponent bits.
    E4m3,
    /// 8-bit float with 5 exponent bits.
    E5m2,
}

impl MmaType {
    /// All types.
    pub const ALL: [MmaType; 5] = [
        MmaType::Bf16,
        MmaType::F16,
        MmaType::Tf32,
        MmaType::E4m3,
        MmaType::E5m2,
    ];

    /// Returns the element type in memory.
    pub const fn dtype(self) -> DType {
        match self {
            MmaType::Bf16 => DType::Bf16,
            MmaType::F16 => DType::F16,
            MmaType::Tf32 => DType::Tf32,
            MmaType::E4m3 => DType::E4m3,
            MmaType::E5m2 => DType::E5m2,
        }
    }

    /// Returns the operand type for an element type in memory, if there is one.
    pub const fn from_dtype(dtype: DType) -> Option<MmaType> {
        Some(match dtype {
            DType::Bf16 => MmaType::Bf16,
            DType::F16 => MmaType::F16,
            DType::Tf32 => MmaType::Tf32,
            DType::E4m3 => MmaType::E4m3,
            DType::E5m2 => MmaType::E5m2,
            _ => return None,
        })
    }

    /// Returns the name in PTX and in the text form.
    pub const fn name(self) -> &'static str {
        self.dtype().name()
    }

    /// Returns the bytes of one element.
    pub const fn bytes(self) -> u32 {
        self.dtype().bytes() as u32
    }

    /// Returns the elements along K of one instruction: 32 bytes.
    pub const fn k(self) -> u32 {
        32 / self.bytes()
    }

    /// Returns the elements in a register of a fragment.
    pub const fn per_reg(self) -> u32 {
        4 / self.bytes()
    }

    /// Returns the type of a fragment register: 32 bits of consecutive elements along K.
    pub const fn reg(self) -> Type {
        match self {
            MmaType::Bf16 => Type::Bf16x2,
            MmaType::F16 => Type::F16x2,
            MmaType::Tf32 => Type::Tf32,
            MmaType::E4m3 => Type::E4m3x4,
            MmaType::E5m2 => Type::E5m2x4,
        }
    }

    /// Returns whether A of this type and B of type `b` can be multiplied: equal types, or two fp8 types.
    pub const fn mixes(self, b: MmaType) -> bool {
        self as u8 == b as u8 || self.bytes() == 1 && b.bytes() == 1
    }
}

/// Returns the types of A and B for the text form; one name if they are equal.
pub(in crate::ops) fn type_names(a: MmaType, b: MmaType) -> String {
    match a == b {
        true => a.name().to_owned(),
        false => format!("{}.{}", a.name(), b.name()),
    }
}

/// Rejects types that cannot be multiplied with each other.
pub(in crate::ops) fn legal_types(name: &str, a: MmaType, b: MmaType) -> Result<(), String> {
    match a.mixes(b) {
        true => Ok(()),
        false => Err(format!(
            "{name} does not support {} with {}; A and B must have the same type, or both be fp8 types",
            a.name(),
            b.name()
        )),
    }
}
