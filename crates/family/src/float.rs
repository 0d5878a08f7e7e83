//! The floating-point types that families take as a flag.

use warpline_ir::DType;

words! {
    /// An element type.
    pub enum Float {
        /// IEEE binary32
        F32 = "f32" | "fp32",
        /// IEEE binary16
        F16 = "f16" | "fp16",
        /// bfloat16
        Bf16 = "bf16",
    }
}

impl Float {
    /// The one whose elements are of that type, if there is one.
    pub fn of(dtype: DType) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|float| float.dtype() == dtype)
    }

    /// As an element in memory.
    pub fn dtype(self) -> DType {
        match self {
            Float::F32 => DType::F32,
            Float::F16 => DType::F16,
            Float::Bf16 => DType::Bf16,
        }
    }
}
