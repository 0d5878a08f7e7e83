//! The way to a GPU, through a stand-in for the driver: memory is there,
//! kernels do nothing. What a kernel should have done must be missed.

mod cache;
mod harness;
mod launches;
mod ops;
mod run;
mod tune;
mod watch;
mod zeros;
