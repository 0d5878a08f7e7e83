//! The translation check rejects mutated PTX. The crate `warpline` checks the PTX of the shipped
//! kernels (`tests/it/shipped.rs`).

mod mutations;
