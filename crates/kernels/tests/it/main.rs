//! Families: configs, ops, tables and declared bounds, without running kernels.

mod bounds;
mod documented;
mod draw;
mod families;
mod gemm;
mod nvfp4;
mod ops;
mod redirects;
mod rows;
mod table;
mod tuning;
