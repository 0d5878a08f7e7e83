// A slot is released exactly once.
use warpline_ir::builder::*;

fn body(ring: Ring<Tile<f32>>) {
    let slot = ring.wait();
    slot.release();
    slot.release();
}

fn main() {}
