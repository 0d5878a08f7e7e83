//! The family tables without a run.

mod bounds;
mod table;
