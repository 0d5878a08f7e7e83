//! The GPU tests where there is no GPU.

mod binary;
mod ops;
mod vectors;
