// Rust's `if` cannot branch on a value that exists only on the GPU.
use warpline_ir::builder::*;

fn body(a: Reg<u32>, b: Reg<u32>) {
    if a.lt(b) {}
}

fn main() {}
