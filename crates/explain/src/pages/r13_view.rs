//! TMA writes a box as one contiguous run of shared memory and has no row stride for it. A view
//! that is narrower than its tile has gaps between its rows, so TMA would write bytes outside of
//! the view. A view must also start on a swizzle atom (8 rows), because TMA computes the swizzle
//! from the address.

use warpline_ir::builder::*;
use warpline_ir::{DType, Swizzle, TensorMapDecl};

pub(super) fn broken(k: Builder) {
    let decl = TensorMapDecl {
        swizzle: Swizzle::B128,
        ..TensorMapDecl::tiled(DType::F32, [16, 8])
    };
    let x = k.tensor_map("x", decl);
    let tile = k.tile::<f32>("tile", 8, 32).declare().whole();
    let left = tile.slice(0..8, 0..16); // rows of the view are 128 bytes apart
    let full = k.barrier("full", 1).arrivals(1).at(0u32);
    k.role("load").body(|| {
        elect(|| {
            full.arrive_expect(x.bytes());
            x.load(left, [0u32, 0], full);
        });
        full.wait(0u32);
    });
}

pub(super) fn repaired(k: Builder) {
    let x = k.tensor_map("x", TensorMapDecl::tiled(DType::F32, [32, 8]));
    let tile = k.tile::<f32>("tile", 8, 32).declare().whole();
    let full = k.barrier("full", 1).arrivals(1).at(0u32);
    k.role("load").body(|| {
        elect(|| {
            full.arrive_expect(x.bytes());
            x.load(tile, [0u32, 0], full);
        });
        full.wait(0u32);
    });
}
