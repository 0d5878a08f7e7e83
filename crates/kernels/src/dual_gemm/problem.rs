//! The problem of a gated GEMM.

use crate::gemm;
use crate::gemm::{Activation, OperandType};
use crate::weights::WeightLayout;
use warpline_family::fields;
use warpline_family::float::FloatType;

fields! {
    /// The problem: `C[M, N] = gate(A[M, K] · B₁[N, K]ᵀ) ∘ (A · B₂[N, K]ᵀ)`, accumulated in f32 and
    /// rounded once.
    pub struct Problem {
        /// Rows of A and C
        pub m: u32,
        /// Columns of C, rows of each weight
        pub n: u32,
        /// Columns of A and of the weights: the summed dimension
        pub k: u32,
        /// Element type of A and the weights (e5m2: A in e5m2, weights in e4m3)
        pub dtype: OperandType,
        /// Element type of C (default: that of A; bf16 for fp8)
        pub out: Option<FloatType>,
        /// Function applied to the gate
        pub gate: Activation = Activation::Silu,
        /// Memory layout of the gate and up weights
        pub weights: WeightLayout = WeightLayout::default(),
        /// Reads scales of A, gate and up, one f32 each, from global memory
        pub scales: bool = false,
        /// Row stride of A (default: dense)
        pub a_stride: Option<u64> [ELEMENTS],
        /// Row stride of the gate weight, or of the packed weights (default: dense)
        pub weight_stride: Option<u64> [ELEMENTS],
        /// Row stride of the up weight (default: that of the gate)
        pub up_stride: Option<u64> [ELEMENTS],
        /// Row stride of C (default: dense)
        pub c_stride: Option<u64> [ELEMENTS],
        /// Alignment of the address of A (default: 16)
        pub a_align: Option<u32> [BYTES],
        /// Alignment of the addresses of the weights (default: 16)
        pub weight_align: Option<u32> [BYTES],
        /// Alignment of the address of C (default: 16)
        pub c_align: Option<u32> [BYTES],
    }
}

impl Problem {
    /// Returns SwiGLU of dense bf16 matrices with separate weights.
    pub fn new(m: u32, n: u32, k: u32) -> Self {
        Self {
            m,
            n,
            k,
            dtype: OperandType::Bf16,
            out: None,
            gate: Activation::Silu,
            weights: WeightLayout::Separate,
            scales: false,
            a_stride: None,
            weight_stride: None,
            up_stride: None,
            c_stride: None,
            a_align: None,
            weight_align: None,
            c_align: None,
        }
    }

    /// Returns the problem as a [`gemm`] problem with two B operands.
    pub(super) fn gated(&self) -> gemm::Problem {
        gemm::Problem {
            out: self.out,
            activation: self.gate,
            up: Some(self.weights),
            scales: self.scales,
            a_stride: self.a_stride,
            b_stride: self.weight_stride,
            up_stride: self.up_stride,
            c_stride: self.c_stride,
            a_align: self.a_align,
            b_align: self.weight_align,
            c_align: self.c_align,
            ..gemm::Problem::new(self.m, self.n, self.k, self.dtype)
        }
    }

    /// Returns the same problem with other extents.
    pub(super) fn with_extents(&self, [m, n, k]: [u32; 3]) -> Self {
        Self {
            m,
            n,
            k,
            ..self.clone()
        }
    }
}
