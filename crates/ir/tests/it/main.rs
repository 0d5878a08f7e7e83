//! The builder and the program form.

mod build_errors;
mod layouts;
mod locations;
mod op_table;
mod program_hash;
mod ui;
