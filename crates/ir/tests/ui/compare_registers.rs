// Rust's `==` on registers would compare handles, not values.
use warpline_ir::builder::*;

fn body(a: Reg<u32>, b: Reg<u32>) -> bool {
    a == b
}

fn main() {}
