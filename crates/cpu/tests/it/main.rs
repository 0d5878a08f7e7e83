//! The executor: single ops and faults, and whole assembly lines.

mod executor;
mod lines;
