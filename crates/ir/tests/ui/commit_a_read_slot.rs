// What a consumer waited for cannot be committed.
use warpline_ir::build::*;

fn body(ring: Ring<Tile<f32>>) {
    ring.wait().commit();
}

fn main() {}
