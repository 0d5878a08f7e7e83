//! TMA has two kinds of tensor map: tiled maps copy boxes, im2col maps copy the pixels of a
//! convolution. The store instruction names the kind as well (`.tile` or `.im2col_no_offs`), and it
//! must be the kind of the map. The map is an opaque parameter, so neither the compiler nor ptxas
//! notices the difference.

use warpline_ir::builder::*;
use warpline_ir::{DType, Swizzle, TensorMapDecl, TensorMapMode};

pub(super) fn broken(k: Builder) {
    let y = k.tensor_map("y", pixels());
    let tile = k.tile::<f32>("tile", 8, 16).declare().whole();
    k.role("store").body(|| {
        tile.store_vec(lane_id() / 4, lane_id() % 4 * 4, [1.0f32; 4]);
        fence_async();
        warp_sync();
        elect(|| {
            y.store(tile, [0u32; 4]); // `y` is an im2col map
            bulk_commit();
            bulk_wait(0);
        });
    });
}

pub(super) fn repaired(k: Builder) {
    let y = k.tensor_map("y", pixels());
    let tile = k.tile::<f32>("tile", 8, 16).declare().whole();
    k.role("store").body(|| {
        tile.store_vec(lane_id() / 4, lane_id() % 4 * 4, [1.0f32; 4]);
        fence_async();
        warp_sync();
        elect(|| {
            y.store_im2col(tile, [0u32; 4]);
            bulk_commit();
            bulk_wait(0);
        });
    });
}

/// Declares copies of 8 pixels of 16 channels from a batch of images.
fn pixels() -> TensorMapDecl {
    TensorMapDecl {
        dtype: DType::F32,
        tile: vec![],
        swizzle: Swizzle::B64,
        mode: TensorMapMode::Im2col {
            lower: vec![0, 0],
            upper: vec![0, 0],
            channels: 16,
            pixels: 8,
            element_strides: vec![1, 1],
        },
    }
}
