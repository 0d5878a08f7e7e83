//! The Warpline kernel program.
//!
//! A [`Kernel`] is a plain value: roles (warps that run one body), the shared
//! tiles and barriers between them, and the ops they run. It is written once,
//! with [`Kernel::build`], and read by the checker, the CPU executor and the
//! PTX printer.
//!
//! | where | what |
//! |---|---|
//! | [`types`], [`value`] | types of registers and elements; registers, operands, references |
//! | [`layout`], [`tensor_map`] | tiles in shared memory, tensors in global memory |
//! | [`program`] | the kernel: roles, tiles, barriers, statements |
//! | [`bounds`] | facts that a kernel declares about its parameters |
//! | [`ops`] | the instructions, one struct each, by group |
//! | [`sync`], [`job`] | acts of synchronisation; asynchronous work |
//! | [`machine`], [`domain`] | the traits ops are written against: values, and values that are partly known |
//! | [`wait`] | what a stuck warp waits for, in words |
//! | [`build`] | what authors write with |

pub mod bounds;
pub mod build;
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
pub use job::{Done, Engine, Job, Span};
pub use launch::{Arg, Launch};
pub use layout::{Descriptor, Major, Swizzle, TileLayout, accumulator_at, mma_a_at, mma_b_at};
pub use loc::{Frame, Loc, Locs};
pub use machine::*;
pub use ops::{Exactness, Info, Instr, Op, Uniform};
pub use program::*;
pub use sync::{Fence, MemoryOrder, Scope, Semantics, Sync, Tally};
pub use target::Target;
pub use tensor_map::{MapMode, TensorMapDecl, TensorMapValue};
pub use types::*;
pub use value::*;
pub use wait::{Awaited, Site, Waits};

/// The README's kernel compiles and builds.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
