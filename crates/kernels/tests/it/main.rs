//! The families without a run.

mod bounds;
mod families;
mod gemm;
mod nvfp4;
mod ops;
mod redirects;
mod table;
mod tuning;
