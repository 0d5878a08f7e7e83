// A slot is used up exactly once.
use warpline_ir::build::*;

fn body(ring: Ring<Tile<f32>>) {
    let slot = ring.wait();
    slot.release();
    slot.release();
}

fn main() {}
