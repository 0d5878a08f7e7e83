//! The problem of a gated GEMM.

use crate::gemm;
use crate::gemm::{Activation, Factor};
use crate::nvfp4::ScaleLayout;
use crate::weights::Weights;
use warpline_family::float::Float;
use warpline_family::{fields, words};

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
        pub dtype: Operands,
        /// How the scales of nvfp4 lie
        pub scale_layout: ScaleLayout = ScaleLayout::default(),
        /// Element type of A where only the weights are nvfp4: f16 or bf16
        pub activations: Option<Float>,
        /// Element type of C; that of A where not given, bf16 for fp8, f16 for nvfp4
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

words! {
    /// The element type of what is multiplied.
    pub enum Operands {
        /// bfloat16
        Bf16 = "bf16",
        /// IEEE binary16
        F16 = "f16" | "fp16",
        /// 8 bits, 4 of them exponent
        E4m3 = "e4m3",
        /// 8 bits, 5 of them exponent
        E5m2 = "e5m2",
        /// 4 bits (e2m1), with a scale in e4m3 for every 16 along K
        Nvfp4 = "nvfp4",
    }
}

impl Operands {
    /// As a factor that tensor cores take as it is, if they do.
    pub fn factor(self) -> Option<Factor> {
        match self {
            Operands::Bf16 => Some(Factor::Bf16),
            Operands::F16 => Some(Factor::F16),
            Operands::E4m3 => Some(Factor::E4m3),
            Operands::E5m2 => Some(Factor::E5m2),
            Operands::Nvfp4 => None,
        }
    }
}

impl From<Factor> for Operands {
    fn from(factor: Factor) -> Self {
        match factor {
            Factor::Bf16 => Operands::Bf16,
            Factor::F16 => Operands::F16,
            Factor::E4m3 => Operands::E4m3,
            Factor::E5m2 => Operands::E5m2,
        }
    }
}

impl Problem {
    /// SwiGLU of dense bf16 matrices, with two tensors of weights.
    pub fn new(m: u32, n: u32, k: u32) -> Self {
        Self {
            m,
            n,
            k,
            dtype: Operands::Bf16,
            scale_layout: ScaleLayout::Plain,
            activations: None,
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

    /// As a product with a second factor, of what tensor cores take as it is.
    pub(super) fn product(&self) -> Option<gemm::Problem> {
        self.dtype.factor().map(|factor| self.product_of(factor))
    }

    /// The same of another type.
    pub(super) fn product_of(&self, factor: Factor) -> gemm::Problem {
        gemm::Problem {
            out: self.out,
            activation: self.gate,
            up: Some(self.weights),
            scales: self.scales,
            a_stride: self.a_stride,
            b_stride: self.weight_stride,
            up_stride: self.up_stride,
            c_stride: self.c_stride,
            ..gemm::Problem::new(self.m, self.n, self.k, factor)
        }
    }

    /// The same with the extents of a product.
    pub(super) fn of(&self, product: gemm::Problem) -> Self {
        let gemm::Problem { m, n, k, .. } = product;
        Self {
            m,
            n,
            k,
            ..self.clone()
        }
    }
}
