//! A view is a rectangle of rows and columns of a tile, which TMA or wgmma accesses as a whole. A
//! view that exceeds its tile covers bytes of other tiles or mbarriers. `slice` rejects such a
//! rectangle, so the checker finds this only in a kernel that is edited after the build.

use warpline_ir::builder::*;
use warpline_ir::{DType, Kernel, TensorMapDecl};

pub(super) fn broken(kernel: &mut Kernel) {
    kernel.tiles[0].layout.rows = 4; // the load fills a view of 8 rows
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
