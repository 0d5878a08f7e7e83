//! Tests on the CPU executor, and with a stub of the CUDA driver.

mod batch_invariant;
mod child;
mod configs;
mod cpu_executor;
mod cudarc;
mod gemm;
mod ms_deform_attn;
mod nvfp4;
mod nvfp4_linear;
mod rows;
mod shipped;
mod stub_driver;
