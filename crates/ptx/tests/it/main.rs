//! Printer tests: every op, whole kernels, control flow.

mod built;
mod ops;
mod print;
