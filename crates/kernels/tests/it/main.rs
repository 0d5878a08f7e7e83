//! The families without a run.

mod bounds;
mod families;
mod ops;
mod table;
mod tuning;
