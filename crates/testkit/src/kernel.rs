//! The target of the tests, and kernels from a closure.

use warpline_ir::builder::Builder;
use warpline_ir::{Kernel, Target};

/// The target that tests build, check and print for.
pub const TARGET: Target = Target::SM_90A;

/// Builds a kernel; panics with its name and every build error.
#[track_caller]
pub fn build(name: &str, body: impl FnOnce(Builder)) -> Kernel {
    Kernel::build(name, &TARGET, body).unwrap_or_else(|e| panic!("{e}"))
}
