//! The Warpline kernel library: one file per family, one line in the [`registry`].
//!
//! A [`Family`] states its problem (class and extents), its configs, the
//! [`Plan`] of kernels that solves it, its cost, a float64 reference and its
//! test table, and its [ops](op). The command line, the tests, the tuner and the Python package
//! iterate over the registry and know no family by name.

mod boxed;
pub mod dual_gemm;
pub mod error;
pub mod family;
pub mod float;
pub mod gemm;
pub mod given;
pub mod layer_norm;
pub mod ms_deform_attn;
pub mod numbers;
pub mod nvfp4;
pub mod op;
mod parallel;
pub mod plan;
pub mod program;
pub mod rms_norm;
mod roles;
pub mod rows;
pub mod shipped;
pub mod softmax;
pub mod stored;
pub mod tensor;
pub mod tunable;
pub mod vector_add;
pub mod weights;

pub use error::FamilyError;
pub use family::{AnyFamily, AnyWork, Case, Cost, Family, Period, Place, Work};
pub use float::Float;
pub use given::Given;
pub use op::{AnyOp, Op, ops};
pub use plan::{Bound, Buffer, BufferBytes, Plan, PlanArg, Step};
pub use program::{Program, Proof};
pub use stored::{Asked, Stored};
pub use tensor::{HostTensor, TensorSpec, UNTOUCHED};
pub use tunable::{Bucket, Tunable};

/// Every family that ships with Warpline.
pub fn registry() -> Vec<&'static dyn AnyFamily> {
    vec![
        &dual_gemm::DualGemm,
        &vector_add::VectorAdd,
        &softmax::Softmax::NEW,
        &layer_norm::LayerNorm::NEW,
        &rms_norm::RmsNorm::NEW,
        &gemm::Gemm::NEW,
        &gemm::Linear::NEW,
        &ms_deform_attn::MsDeformAttn,
    ]
}
