// A consumer cannot commit a slot.
use warpline_ir::builder::*;

fn body(ring: Ring<Tile<f32>>) {
    ring.wait().commit();
}

fn main() {}
