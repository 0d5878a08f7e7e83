// A loop body cannot release a slot and also carry it.
use warpline_ir::builder::*;

fn body(ring: Ring<Tile<f32>>) {
    let last = steps(4).fold(ring.wait(), |_, slot| {
        slot.release();
        slot
    });
    last.release();
}

fn main() {}
