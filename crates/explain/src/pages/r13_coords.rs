//! A tensor copy names one coordinate for each dimension of its tensor map, innermost first. The
//! number of dimensions is part of the PTX instruction, and the map must have the same number. The
//! inner coordinate must be at a multiple of 16 bytes, because TMA moves 16-byte chunks. The map is
//! an opaque parameter, so ptxas cannot check the coordinates against it.

use warpline_ir::builder::*;
use warpline_ir::{DType, TensorMapDecl};

pub(super) fn broken(k: Builder) {
    let x = k.tensor_map("x", TensorMapDecl::tiled(DType::F32, [16, 8]));
    let tile = k.tile::<f32>("tile", 8, 16).declare().whole();
    let full = k.barrier("full", 1).arrivals(1).at(0u32);
    k.role("load").body(|| {
        elect(|| {
            full.arrive_expect(x.bytes());
            x.load(tile, [0u32], full); // the map has two dimensions
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
