//! What is asked of a gated layer.

use crate::float::Float;
use crate::gemm;
use crate::gemm::{Activation, Factor};
use crate::weights::Weights;
use clap::{ArgAction, Args};
use serde::Serialize;

/// What is asked: `C[M, N] = gate(A[M, K] · B₁[N, K]ᵀ) ∘ (A · B₂[N, K]ᵀ)`, both
/// summed in f32, with one rounding.
#[derive(Clone, PartialEq, Debug, Args, Serialize)]
pub struct Problem {
    /// Rows of A and C
    #[arg(long, value_name = "COUNT")]
    pub m: u32,
    /// Columns of C, rows of each of the weights
    #[arg(long, value_name = "COUNT")]
    pub n: u32,
    /// Elements that each sum runs over
    #[arg(long, value_name = "COUNT")]
    pub k: u32,
    /// Element type of A and the weights (e5m2: of A, with weights in e4m3)
    #[arg(long)]
    pub dtype: Factor,
    /// Element type of C; that of A where not given, bf16 for fp8
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub out: Option<Float>,
    /// The function of the gate
    #[arg(long)]
    #[serde(skip_serializing_if = "is_silu")]
    pub gate: Activation,
    /// How the two weights lie
    #[arg(long)]
    #[serde(skip_serializing_if = "is_default")]
    pub weights: Weights,
    /// A scale of A and one of each of the weights, each a number in memory
    #[arg(long, num_args = 0..=1, default_missing_value = "true", action = ArgAction::Set)]
    #[serde(skip_serializing_if = "is_default")]
    pub scales: bool,
    /// Elements from one row of A to the next; dense where not given
    #[arg(long, value_name = "ELEMENTS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub a_stride: Option<u64>,
    /// Elements from one row of the weights, or of the gate's, to the next; dense where not given
    #[arg(long, value_name = "ELEMENTS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight_stride: Option<u64>,
    /// Elements from one row of the other weights to the next; as in the gate's where not given
    #[arg(long, value_name = "ELEMENTS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up_stride: Option<u64>,
    /// Elements from one row of C to the next; dense where not given
    #[arg(long, value_name = "ELEMENTS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub c_stride: Option<u64>,
}

fn is_default<T: Default + PartialEq>(x: &T) -> bool {
    *x == T::default()
}

fn is_silu(gate: &Activation) -> bool {
    *gate == Activation::Silu
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

    /// As a product with a second factor.
    pub(super) fn product(&self) -> gemm::Problem {
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
