//! TMA permutes 16-byte chunks while it writes shared memory, by the swizzle of the tensor map.
//! Threads and wgmma undo the swizzle of the tile. If the two differ, elements are read from wrong
//! addresses, and the result is wrong in every run without any error.

use warpline_ir::builder::*;
use warpline_ir::{DType, Swizzle, TensorMapDecl};

pub(super) fn broken(k: Builder) {
    let decl = TensorMapDecl::tiled(DType::F32, [16, 8]);
    let x = k.tensor_map("x", decl);
    let tile = k.tile::<f32>("tile", 8, 16).unswizzled(); // the map has the 64-byte swizzle
    let tile = tile.declare().whole();
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
    let decl = TensorMapDecl::tiled(DType::F32, [16, 8]);
    let x = k.tensor_map("x", decl);
    let tile = k.tile::<f32>("tile", 8, 16).swizzle(Swizzle::B64);
    let tile = tile.declare().whole();
    let full = k.barrier("full", 1).arrivals(1).at(0u32);
    k.role("load").body(|| {
        elect(|| {
            full.arrive_expect(x.bytes());
            x.load(tile, [0u32, 0], full);
        });
        full.wait(0u32);
    });
}
