//! The GPU runtime with a stub of the CUDA driver. The stub has memory, but its kernels do nothing, so
//! missing results must be detected.

mod cache;
mod harness;
mod launches;
mod ops;
mod run;
mod tune;
mod watch;
mod zeros;
