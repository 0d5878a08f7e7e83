//! Tests on the simulator, and with a stub of the CUDA driver.

mod child;
mod configs;
mod cudarc;
mod gemm;
mod ms_deform_attn;
mod nvfp4;
mod rows;
mod shipped;
mod simulator;
mod stand_in;
