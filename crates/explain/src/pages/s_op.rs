//! The GPU has each instruction only in some forms: types, widths, cache operators, operands. ptxas
//! rejects most illegal forms with a message about generated PTX. Some of them assemble, and stop
//! the kernel at run time. The checker reports both at the line of the kernel. Here a tensor store
//! has a negative coordinate, which stops the kernel; a load may have one, because TMA fills with
//! zeros.

use warpline_ir::builder::*;
use warpline_ir::{DType, TensorMapDecl};

pub(super) fn broken(k: Builder) {
    let y = k.tensor_map("y", TensorMapDecl::tiled(DType::F32, [16, 8]));
    let tile = k.tile::<f32>("tile", 8, 16).declare().whole();
    k.role("store").body(|| {
        tile.store_vec(lane_id() / 4, lane_id() % 4 * 4, [1.0f32; 4]);
        fence_async();
        warp_sync();
        elect(|| {
            y.store(tile, [0, -1]); // starts one row before the tensor
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
            y.store(tile, [0, 0]);
            bulk_commit();
            bulk_wait(0);
        });
    });
}
