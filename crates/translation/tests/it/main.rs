//! Reading PTX again: of shipped kernels, and with one mutation.

mod mutations;
mod shipped;
