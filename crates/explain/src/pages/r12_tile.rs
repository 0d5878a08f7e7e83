//! A swizzle permutes the 16-byte chunks inside spans of 32, 64 or 128 bytes. A row that is not a
//! multiple of the span would mix chunks of two rows, and TMA and wgmma would read other elements
//! than the threads wrote. A tile without rows, columns or stages has no bytes at all. The builder
//! rejects both, so the checker finds them only in a kernel that is edited after the build.

use warpline_ir::Kernel;
use warpline_ir::builder::*;

pub(super) fn broken(kernel: &mut Kernel) {
    kernel.tiles[0].layout.cols = 24; // rows of 96 bytes, with a swizzle span of 128 bytes
}

pub(super) fn repaired(k: Builder) {
    let y = k.pointer::<f32>("y");
    let tile = k.tile::<f32>("tile", 8, 32).declare().whole(); // rows of 128 bytes
    k.role("all").body(|| {
        tile.store(0u32, lane_id(), 1.0);
        y.store(cta_id() * 32 + lane_id(), tile.load(0u32, lane_id()));
    });
}
