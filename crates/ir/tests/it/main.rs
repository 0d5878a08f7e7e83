//! Tests of the builder and the kernel program.

mod build_errors;
mod layouts;
mod locations;
mod op_table;
mod program_hash;
mod ui;
