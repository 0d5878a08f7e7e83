//! Each rule of the checker, broken alone: refused with its code, at its line.

mod between;
mod built;
mod bytes;
mod clusters;
mod convergence;
mod counts;
mod defined;
mod early;
mod flight;
mod indices;
mod kit;
mod laps;
mod legal;
mod meetings;
mod named;
mod operands;
mod proxy;
mod quiet;
mod references;
mod registers;
mod roles;
mod shared;
mod tensor_maps;
mod values;
mod verdict;
mod wgmma;
