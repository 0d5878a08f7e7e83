//! The GPU tests without a GPU.

mod binary;
mod ops;
mod vectors;
