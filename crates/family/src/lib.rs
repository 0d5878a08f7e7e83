//! The frame of kernel families: what a family states of itself, and how tools read it.
//!
//! An author implements [`Family`] on plain structs whose fields are described by
//! [`fields!`], [`config!`] and [`words!`]. The command line, the tests, the tuner and
//! the Python package see [`AnyFamily`] and [`AnyWork`], and know no family by name.
//!
//! | where | what |
//! |---|---|
//! | [`family`] | the trait that an author implements |
//! | [`field`] | fields of problems and configs: name, help, type, default, legal values |
//! | [`request`], `redirect` | values of fields, as a caller gives them; requests that are meant for another family |
//! | [`plan`], [`program`] | kernels with their arguments by name; kernels that are built and checked once |
//! | [`tensor`], [`float`], [`numbers`] | tensors on the host, element types, random numbers and rounding |
//! | [`mod@resources`] | the resources of a config, and whether they fit |
//! | [`op`] | functions of a family for Python, torch and Rust |
//! | [`bucket`] | which problems share a tuned config |
//! | [`prelude`] | the names that most families import |
//! | [`stored`] | tensors that a caller has stored |
//! | [`erased`] | families and work without their types |
//! | `declared` | ops and measured calls as JSON, for Python |
//! | [`docs`] | a family as a section of Markdown |
//! | [`shipped`] | the work that a family names itself |

#[macro_use]
pub mod field;

pub mod bucket;
mod declared;
pub mod docs;
pub mod erased;
pub mod error;
pub mod family;
pub mod float;
pub mod numbers;
pub mod op;
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
pub use erased::{AnyFamily, AnyOp, AnyWork, MeasuredCall, Tuning, Work, Works};
pub use error::FamilyError;
pub use family::{AskedOf, Case, Cost, Family, Op, Place, Redirects, trips};
pub use field::{Field, Fields};
pub use float::Float;
pub use plan::{Address, Bound, Buffer, BufferBytes, Plan, PlanArg, Step, TensorArg};
pub use program::{Program, Proof};
pub use request::{FamilyFields, Request};
pub use resources::resources;
pub use stored::{Asked, Stored};
pub use tensor::{HostTensor, TensorSpec, UNTOUCHED};
