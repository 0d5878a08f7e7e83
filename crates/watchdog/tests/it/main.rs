//! Watched kernels on the CPU executor, and as PTX.

mod correct;
mod hanging;
mod harness;
mod mutants;
mod printed;
