//! Hard kernels that try the program form, written with the public API only.
//!
//! Each is checked, assembled without an advisory or a spill, and run on the
//! simulator under every timing against float64. On a machine with an H100 or
//! H200 the same cases run there:
//! `cargo test --release -p warpline --test probes -- --ignored`.

mod attention;
mod dequantise;
mod harness;
mod ping_pong;
mod split_k;
mod stream_k;
mod thin;
