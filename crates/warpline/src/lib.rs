//! Warp-specialized GPU kernels: devices, launches, and the kernel library
