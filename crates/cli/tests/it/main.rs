//! The command line: as a process, as a library call, and the crate of `warpline new`.

mod bench;
mod check;
mod cli;
mod common;
mod data;
mod double;
mod new;
mod one_folder;
mod own_kernel;
mod sweep;
mod tune;
