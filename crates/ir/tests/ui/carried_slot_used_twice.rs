// A slot that the loop carries cannot be released as well.
use warpline_ir::builder::*;

fn body(ring: Ring<Tile<f32>>) {
    let last = steps(4).fold(ring.wait(), |_, slot| {
        slot.release();
        slot
    });
    last.release();
}

fn main() {}
