//! The probes, and the docs that show them.

mod docs;
mod probes;
