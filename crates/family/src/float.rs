//! The floating-point element types that families accept as a flag.

use warpline_ir::DType;

keywords! {
    /// A floating-point element type.
    pub enum FloatType {
        /// IEEE binary32
        F32 = "f32" | "fp32",
        /// IEEE binary16
        F16 = "f16" | "fp16",
        /// bfloat16
        Bf16 = "bf16",
    }
}

impl FloatType {
    /// Returns the keyword of an element type; `None` if it is not one of these.
    pub fn from_dtype(dtype: DType) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|float| float.dtype() == dtype)
    }

    /// Returns the element type.
    pub fn dtype(self) -> DType {
        match self {
            FloatType::F32 => DType::F32,
            FloatType::F16 => DType::F16,
            FloatType::Bf16 => DType::Bf16,
        }
    }
}
