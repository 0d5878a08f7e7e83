//! Every check has a kernel that it warns of, at its line, and one that passes.

mod branches;
mod kit;
mod memory;
mod resources;
mod rings;
mod roles;
mod shape;
