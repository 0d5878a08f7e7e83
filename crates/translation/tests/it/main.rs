//! PTX with a mutation is rejected. The crate `warpline` reads the PTX of shipped kernels
//! (`tests/it/shipped.rs`).

mod mutations;
