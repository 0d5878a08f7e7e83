//! The kernel IR and the builder that authors write kernels with.
//!
//! A [`Kernel`] is a plain value: roles (groups of warps that run one body),
//! shared tiles and barriers, and ops. [`Kernel::build`] creates it; the
//! checker, the CPU executor and the PTX printer read it.
//!
//! | module | contents |
//! |---|---|
//! | [`builder`] | the API that kernel authors use |
//! | [`program`] | the kernel: roles, tiles, barriers, statements |
//! | [`types`], [`value`] | types of registers and elements; registers, operands, references |
//! | [`layout`], [`tensor_map`] | tiles in shared memory; tensors in global memory |
//! | [`bounds`], [`launch`] | declared bounds of the parameters; grid and arguments of a launch |
//! | [`ops`] | the instructions, one struct each |
//! | [`sync`], [`job`] | synchronization effects of ops; asynchronous operations |
//! | [`machine`], [`domain`] | the traits that ops execute against: concrete and abstract values |
//! | [`wait`] | descriptions of blocked warps |

pub mod bounds;
pub mod builder;

pub mod domain;
pub mod error;
pub mod job;
pub mod lanes;
pub mod launch;
pub mod layout;
pub mod loc;
pub mod machine;
pub mod ops;
pub mod program;
pub mod sync;
pub mod target;
pub mod tensor_map;
mod text;
pub mod types;
pub mod value;
pub mod wait;

pub use bounds::{Bounds, BrokenBound, Extent, ExtentTerm, Limit};
pub use domain::{Binary, Domain};
pub use error::{BuildError, BuildErrors};
pub use job::{Engine, Job, JobCompletion, Span};
pub use launch::{Arg, Launch};
pub use layout::{Major, Swizzle, TileLayout, WgmmaDescriptor, accumulator_at, mma_a_at, mma_b_at};
pub use loc::{Frame, Loc, Locs};
pub use machine::*;
pub use ops::{Exactness, Instr, Op, OpInfo, Uniform};
pub use program::*;
pub use sync::{BarrierReduction, FenceKind, MemoryOrder, Scope, Semantics, SyncOp};
pub use target::Target;
pub use tensor_map::{TensorMapDecl, TensorMapMode, TensorMapValue};
pub use types::*;
pub use value::*;
pub use wait::{OpLocation, WaitList, WaitReason};

/// Compiles and builds the kernel of the README.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
