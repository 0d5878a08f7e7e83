//! Benchmarks of the CPU side, in `benches/`: `cargo bench -p warpline-bench`.
