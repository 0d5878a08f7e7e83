//! Each rule of the checker, broken alone: refused with its code, at its line.

mod clusters;
mod convergence;
mod defined;
mod indices;
mod kit;
mod legal;
mod named;
mod operands;
mod references;
mod registers;
mod roles;
mod shared;
mod tensor_maps;
mod verdict;
mod wgmma;
