// A slot that is carried on is no longer in hand.
use warpline_ir::build::*;

fn body(ring: Ring<Tile<f32>>) {
    let last = steps(4).fold(ring.wait(), |_, slot| {
        slot.release();
        slot
    });
    last.release();
}

fn main() {}
