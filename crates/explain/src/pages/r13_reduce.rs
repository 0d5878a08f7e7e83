//! `cp.reduce.async.bulk.tensor` combines a box with global memory. Each element type has its own
//! operations: `xor`, for example, does not exist for floats. The element type is in the tensor map
//! and the operation is in the instruction, so ptxas cannot compare the two.

use warpline_ir::builder::*;
use warpline_ir::ops::bulk::Reduction;
use warpline_ir::{DType, TensorMapDecl};

pub(super) fn broken(k: Builder) {
    let y = k.tensor_map("y", TensorMapDecl::tiled(DType::F32, [16, 8]));
    let tile = k.tile::<f32>("tile", 8, 16).declare().whole();
    k.role("store").body(|| {
        tile.store_vec(lane_id() / 4, lane_id() % 4 * 4, [1.0f32; 4]);
        fence_async();
        warp_sync();
        elect(|| {
            y.reduce(Reduction::Xor, tile, [0u32, 0]); // floats have no `xor`
            bulk_commit();
            bulk_wait(0);
        });
    });
}

pub(super) fn repaired(k: Builder) {
    let y = k.tensor_map("y", TensorMapDecl::tiled(DType::F32, [16, 8]));
    let tile = k.tile::<f32>("tile", 8, 16).declare().whole();
    k.role("store").body(|| {
        tile.store_vec(lane_id() / 4, lane_id() % 4 * 4, [1.0f32; 4]);
        fence_async();
        warp_sync();
        elect(|| {
            y.reduce(Reduction::Add, tile, [0u32, 0]);
            bulk_commit();
            bulk_wait(0);
        });
    });
}
