//! A tensor map describes boxes that TMA copies. The hardware takes boxes of up to 5 dimensions
//! with at most 256 elements along each, and an inner extent that is a multiple of 16 bytes and
//! fits into the swizzle span. `cuTensorMapEncodeTiled` rejects any other box with an error number
//! and no reason. The builder rejects such a declaration and states the reason, so the checker
//! finds it only in a kernel that is edited after the build.

use warpline_ir::builder::*;
use warpline_ir::{DType, Kernel, ParamKind, TensorMapDecl};

pub(super) fn broken(kernel: &mut Kernel) {
    let decl = TensorMapDecl::tiled(DType::F32, [16, 512]); // a box has at most 256 rows
    kernel.params[0].kind = ParamKind::TensorMap(decl);
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
