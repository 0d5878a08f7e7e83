//! A brute-force machine that explores every interleaving of warps and engines of a small kernel.
//!
//! It shares no code with the checker. With the executor it shares only the memory type of a
//! launch: ops run through their own `exec` on another [`Machine`](warpline_ir::Machine). It tracks
//! happens-before per lane. It does not check global memory, register budgets, wgmma and tensor maps.

mod code;
mod env;
mod explore;
mod happens_before;
mod machine;
mod state;
mod sync;

pub use explore::{Exploration, explore};
