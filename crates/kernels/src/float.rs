//! The floating-point types that families take as a flag.

use clap::ValueEnum;
use serde::Serialize;
use warpline_ir::DType;

/// An element type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Float {
    /// IEEE binary32
    #[value(alias = "fp32")]
    F32,
    /// IEEE binary16
    #[value(alias = "fp16")]
    F16,
    /// bfloat16
    Bf16,
}

impl Float {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::F32, Self::F16, Self::Bf16];

    /// The one whose elements are of that type, if there is one.
    pub fn of(dtype: DType) -> Option<Self> {
        Self::ALL.into_iter().find(|float| float.dtype() == dtype)
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
