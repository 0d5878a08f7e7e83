//! The families without a run.

mod bounds;
mod documented;
mod families;
mod ops;
mod rows;
mod table;
mod tuning;
