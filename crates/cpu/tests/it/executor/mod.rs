//! Executor tests: results, detected faults, messages.

mod barriers;
mod clusters;
mod copies;
mod counters;
mod dsmem;
mod endings;
mod faults;
mod fences;
mod global;
mod harness;
mod lane_memory;
mod lanes;
mod mutants;
mod numbers;
mod programs;
mod read_only;
mod reductions;
mod strong;
mod waits;
