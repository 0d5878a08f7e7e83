//! Executor tests: single ops and faults, and whole pipelines.

mod executor;
mod pipelines;
