//! Element types of matrix products.

use crate::types::{DType, Type};

/// The element type of A or B.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MmaType {
    /// bfloat16.
    Bf16,
    /// IEEE binary16.
    F16,
    /// TensorFloat-32: 32 bits, of which the low 13 do not count.
    Tf32,
    /// 8-bit float with 4 exponent bits.
    E4m3,
    /// 8-bit float with 5 exponent bits.
    E5m2,
}

impl MmaType {
    /// Every one.
    pub const ALL: [MmaType; 5] = [
        MmaType::Bf16,
        MmaType::F16,
        MmaType::Tf32,
        MmaType::E4m3,
        MmaType::E5m2,
    ];

    /// The type of such elements in memory.
    pub const fn dtype(self) -> DType {
        match self {
            MmaType::Bf16 => DType::Bf16,
            MmaType::F16 => DType::F16,
            MmaType::Tf32 => DType::Tf32,
            MmaType::E4m3 => DType::E4m3,
            MmaType::E5m2 => DType::E5m2,
        }
    }

    /// The product type of elements in memory, if there is one.
    pub const fn of(dtype: DType) -> Option<MmaType> {
        Some(match dtype {
            DType::Bf16 => MmaType::Bf16,
            DType::F16 => MmaType::F16,
            DType::Tf32 => MmaType::Tf32,
            DType::E4m3 => MmaType::E4m3,
            DType::E5m2 => MmaType::E5m2,
            _ => return None,
        })
    }

    /// The name in PTX and in text.
    pub const fn name(self) -> &'static str {
        self.dtype().name()
    }

    /// Bytes of one element.
    pub const fn bytes(self) -> u32 {
        self.dtype().bytes() as u32
    }

    /// Elements along K of one instruction: 32 bytes of them.
    pub const fn k(self) -> u32 {
        32 / self.bytes()
    }

    /// Elements in a register of a fragment.
    pub const fn per_reg(self) -> u32 {
        4 / self.bytes()
    }

    /// The type of a register of a fragment: 32 bits of neighbours along K.
    pub const fn reg(self) -> Type {
        match self {
            MmaType::Bf16 => Type::Bf16x2,
            MmaType::F16 => Type::F16x2,
            MmaType::Tf32 => Type::Tf32,
            MmaType::E4m3 => Type::E4m3x4,
            MmaType::E5m2 => Type::E5m2x4,
        }
    }

    /// Can A be of this type and B of the other? fp8 types mix.
    pub const fn mixes(self, b: MmaType) -> bool {
        self as u8 == b as u8 || self.bytes() == 1 && b.bytes() == 1
    }
}

/// The types of A and B in a name: one if they are the same.
pub(in crate::ops) fn pair(a: MmaType, b: MmaType) -> String {
    match a == b {
        true => a.name().to_owned(),
        false => format!("{}.{}", a.name(), b.name()),
    }
}

/// Refuses types that no product mixes.
pub(in crate::ops) fn legal_types(name: &str, a: MmaType, b: MmaType) -> Result<(), String> {
    match a.mixes(b) {
        true => Ok(()),
        false => Err(format!(
            "{name} multiplies elements of one type, or fp8 with fp8, not {} with {}",
            a.name(),
            b.name()
        )),
    }
}
