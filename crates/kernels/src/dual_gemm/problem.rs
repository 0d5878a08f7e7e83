//! The problem of a gated GEMM.

use crate::gemm;
use crate::gemm::{Activation, Factor};
use crate::weights::Weights;
use warpline_family::fields;
use warpline_family::float::Float;

fields! {
    /// The problem: `C[M, N] = gate(A[M, K] · B₁[N, K]ᵀ) ∘ (A · B₂[N, K]ᵀ)`, both
    /// summed in f32, with one rounding.
    pub struct Problem {
        /// Rows of A and C
        pub m: u32,
        /// Columns of C, rows of each of the weights
        pub n: u32,
        /// Elements that each sum runs over
        pub k: u32,
        /// Element type of A and the weights (e5m2: of A, with weights in e4m3)
        pub dtype: Factor,
        /// Element type of C; that of A where not given, bf16 for fp8
        pub out: Option<Float>,
        /// The function of the gate
        pub gate: Activation = Activation::Silu,
        /// How the two weights lie
        pub weights: Weights = Weights::default(),
        /// A scale of A and one of each of the weights, each a number in memory
        pub scales: bool = false,
        /// Elements from one row of A to the next; dense where not given
        pub a_stride: Option<u64> [ELEMENTS],
        /// Elements from one row of the weights, or of the gate's, to the next; dense where not given
        pub weight_stride: Option<u64> [ELEMENTS],
        /// Elements from one row of the other weights to the next; as in the gate's where not given
        pub up_stride: Option<u64> [ELEMENTS],
        /// Elements from one row of C to the next; dense where not given
        pub c_stride: Option<u64> [ELEMENTS],
    }
}

impl Problem {
    /// SwiGLU of dense bf16 matrices, with two tensors of weights.
    pub fn new(m: u32, n: u32, k: u32) -> Self {
        Self {
            m,
            n,
            k,
            dtype: Factor::Bf16,
            out: None,
            gate: Activation::Silu,
            weights: Weights::Apart,
            scales: false,
            a_stride: None,
            weight_stride: None,
            up_stride: None,
            c_stride: None,
        }
    }

    /// The gated GEMM as [`gemm`] has it: one with a second operand beside B.
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
