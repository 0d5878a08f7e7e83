//! The executor: what runs, what is found, and how it is said.

mod clusters;
mod faults;
mod harness;
mod mutants;
mod programs;
mod waits;
