//! A machine that explores every order of warps and engines of a small kernel.
//!
//! It shares no code and no table with the checker, and none with the executor but the memory
//! that a launch is described by: ops run through their own `exec` on another
//! [`Machine`](warpline_ir::Machine). Happens-before is kept per lane. It does not judge global
//! memory, register pools, wgmma and tensor maps.

mod act;
mod code;
mod env;
mod explore;
mod know;
mod machine;
mod state;

pub use explore::{Explored, explore};
