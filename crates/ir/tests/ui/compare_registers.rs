// Rust's `==` on registers would compare handles, not numbers.
use warpline_ir::build::*;

fn body(a: Reg<u32>, b: Reg<u32>) -> bool {
    a == b
}

fn main() {}
