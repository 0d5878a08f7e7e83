//! Benchmarks of the CPU executor, in `benches/`: `cargo bench -p warpline-bench`.
