//! Runs Warpline kernels on the CPU, with asynchronous engines and shadow memory
