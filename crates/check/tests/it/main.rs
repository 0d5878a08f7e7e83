//! The rules of the checker, and the checker against brute force.

mod brute;
mod codes;
mod rules;
