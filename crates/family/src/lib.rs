//! Defines kernel families: the [`Family`] trait and the types that tools use to read a family.
//!
//! The author of a family declares its problem and config with [`fields!`], [`config!`] and
//! [`keywords!`] and implements [`Family`]. The command line, the tests, the autotuner and the
//! Python package use the type-erased [`AnyFamily`] and [`AnyWorkload`]; none of them names a
//! family.
//!
//! | where | what |
//! |---|---|
//! | [`family`] | the `Family` trait |
//! | [`field`] | fields of problems and configs: name, help, type, default, legal values |
//! | [`request`], `redirect` | field values set by the caller; requests that another family serves |
//! | [`plan`], [`program`] | launches with arguments by name; cached kernels and their proofs |
//! | [`tensor`], [`float`], [`numbers`] | host tensors, element types, random numbers and rounding |
//! | [`mod@resources`] | the resources of a kernel, and whether they fit an SM |
//! | [`op`] | the ops that a family serves to Python, torch and Rust |
//! | [`bucket`] | sets of problems that share a tuned config |
//! | [`prelude`] | the names that most families import |
//! | [`stored`] | input tensors that the caller stores in files |
//! | [`erased`] | type-erased families and workloads |
//! | `op_json` | ops and benchmark calls as JSON, for Python |
//! | [`docs`] | the Markdown reference of a family |
//! | [`draw`] | random valid problems and legal configs |
//! | [`shipped`] | the workloads that a family declares: test cases, candidates, benchmarks |

#[macro_use]
pub mod field;

pub mod bucket;
pub mod docs;
pub mod draw;
pub mod erased;
pub mod error;
pub mod family;
pub mod float;
pub mod numbers;
pub mod op;
mod op_json;
pub mod plan;
pub mod prelude;
pub mod program;
mod redirect;
pub mod request;
pub mod resources;
pub mod shipped;
pub mod stored;
pub mod tensor;

#[doc(hidden)]
pub use {serde, serde_json};

pub use bucket::Bucket;
pub use erased::{AnyFamily, AnyOp, AnyWorkload, BenchCall, Tuning, Workload, Workloads};
pub use error::FamilyError;
pub use family::{
    Cost, DeviceKind, Family, Op, ProblemAndChoice, Redirects, TestCase, trip_counts,
};
pub use field::{Field, Fields};
pub use float::FloatType;
pub use plan::{
    Address, Buffer, BufferAddresses, BufferBytes, LaunchStep, Plan, PlanArg, TensorArg,
};
pub use program::{Program, Proof};
pub use request::{FamilyFields, Request};
pub use resources::resources;
pub use stored::{IsOptionSet, StoredTensors};
pub use tensor::{HostTensor, TensorSpec, UNTOUCHED};
