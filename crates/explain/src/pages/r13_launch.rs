//! A launch fills in the tensor of a tensor map: its address, extents and strides. TMA needs an
//! address and strides that are multiples of 16 bytes, and an address that is not null. The kernel
//! cannot know these values, so the runtime checks them when it binds the arguments. A typical case
//! is a matrix with an odd number of columns whose rows are not padded.

use warpline_ir::builder::*;
use warpline_ir::{Arg, DType, Launch, TensorMapDecl};

pub(super) fn broken(launch: &mut Launch) {
    if let Arg::TensorMap(x) = &mut launch.args[0] {
        x.extents[0] = 15;
        x.strides[0] = 60; // rows of 15 floats without padding
    }
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
