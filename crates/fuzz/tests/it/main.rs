//! The generator, the brute-force machine, and the share of kernels that are proved.

mod brute;
mod ops;
mod share;
