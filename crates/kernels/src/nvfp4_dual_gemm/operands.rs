//! The tensors of a problem in memory, for one weight and for two.

use super::shape::Shape;
use crate::nvfp4::ScaleLayout;
use warpline_family::float::FloatType;
use warpline_family::plan::Address;

/// An NVFP4 tensor.
pub(crate) struct CodedTensor {
    /// The kernel's parameters of codes and scales.
    pub(crate) names: [&'static str; 2],
    /// Rows.
    pub(crate) rows: u32,
    /// The codes and scales of the call.
    pub(crate) inputs: [Address; 2],
}

/// The operand A.
pub(crate) enum AOperand {
    /// In NVFP4.
    Coded(CodedTensor),
    /// In f16 or bf16.
    Wide {
        /// The first element.
        address: Address,
        /// Row stride in elements.
        stride: u64,
    },
}

/// The tensors of a problem, from which a plan follows.
pub(crate) struct Operands {
    /// Extents and outputs.
    pub(crate) shape: Shape,
    /// Element type of the decoded operands and of C.
    pub(crate) decoded_type: FloatType,
    /// Memory layout of all scales.
    pub(crate) scale_layout: ScaleLayout,
    /// The weights.
    pub(crate) weights: Vec<CodedTensor>,
    /// The activations.
    pub(crate) a: AOperand,
    /// Row stride of C in elements.
    pub(crate) out_stride: u64,
    /// The kernel's parameters of the tensor scales.
    pub(crate) tensor_scales: &'static [&'static str],
    /// Their addresses.
    pub(crate) tensor_scale_addresses: Vec<Address>,
    /// The bias.
    pub(crate) bias: Option<Address>,
}
