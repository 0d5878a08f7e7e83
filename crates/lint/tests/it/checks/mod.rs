//! For every check: a kernel that causes a warning at its line, and a kernel that passes.

mod branches;
mod kit;
mod memory;
mod resources;
mod rings;
mod roles;
mod shape;
