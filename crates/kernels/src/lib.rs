//! The Warpline kernel library: one module per family, one line in the [`registry`].
//!
//! A [`Family`] declares its problem (class and extents), its configs, the [`Plan`] of kernels that
//! solves it, its cost, a float64 reference, its test table and its [ops](op). The traits are in
//! [`warpline_family`]. The command line, the tests, the tuner and the Python package iterate over
//! the registry; they name no family.

pub mod attention;
mod batch_invariant;
pub mod dual_gemm;
pub mod gemm;
pub mod layer_norm;
mod memo;
pub mod ms_deform_attn;
pub mod nvfp4;
pub mod nvfp4_dual_gemm;
pub mod nvfp4_linear;
mod parallel;
pub mod rms_norm;
mod roles;
pub mod rows;
pub mod softmax;
pub mod vector_add;
pub mod weights;

pub use warpline_family::*;

/// Returns every family that ships with Warpline.
pub fn registry() -> Vec<&'static dyn AnyFamily> {
    vec![
        &dual_gemm::DualGemm::NEW,
        &nvfp4_dual_gemm::Nvfp4DualGemm,
        &nvfp4_linear::Nvfp4Linear,
        &vector_add::VectorAdd,
        &softmax::Softmax::NEW,
        &layer_norm::LayerNorm::NEW,
        &rms_norm::RmsNorm::NEW,
        &gemm::Gemm::NEW,
        &gemm::Linear::NEW,
        &ms_deform_attn::MsDeformAttn,
        &attention::Attention,
    ]
}

/// Returns every op of every shipped family, in the order of the registry.
pub fn ops() -> Vec<AnyOp> {
    let families = registry();
    families.into_iter().flat_map(|f| f.ops()).collect()
}
