//! TMA always copies a whole box, also at the edge of a tensor, where it fills with zeros. The box
//! is part of the tensor map; the copy only names an address in shared memory. A box that is larger
//! than the tile overwrites its neighbor, and a smaller one leaves old bytes in the tile.

use warpline_ir::builder::*;
use warpline_ir::{DType, TensorMapDecl};

pub(super) fn broken(k: Builder) {
    let x = k.tensor_map("x", TensorMapDecl::tiled(DType::F32, [16, 4])); // boxes of 4 rows
    let tile = k.tile::<f32>("tile", 8, 16).declare().whole(); // a tile of 8 rows
    let full = k.barrier("full", 1).arrivals(1).at(0u32);
    k.role("load").body(|| {
        elect(|| {
            full.arrive_expect(x.bytes());
            x.load(tile, [0u32, 0], full);
        });
        full.wait(0u32);
    });
}

pub(super) fn repaired(k: Builder) {
    let x = k.tensor_map("x", TensorMapDecl::tiled(DType::F32, [16, 8]));
    let tile = k.tile::<f32>("tile", 8, 16).declare().whole();
    let full = k.barrier("full", 1).arrivals(1).at(0u32);
    k.role("load").body(|| {
        elect(|| {
            full.arrive_expect(x.bytes());
            x.load(tile, [0u32, 0], full);
        });
        full.wait(0u32);
    });
}
