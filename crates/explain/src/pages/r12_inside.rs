//! The launch reserves `shared_bytes` of shared memory for each CTA. An access beyond them stops
//! the kernel with an illegal address, or it stays unnoticed because the driver rounds the
//! reservation up. The builder adds up all tiles and mbarriers, so only a kernel that is edited
//! after the build has a wrong size.

use warpline_ir::Kernel;
use warpline_ir::builder::*;

pub(super) fn broken(kernel: &mut Kernel) {
    kernel.shared_bytes = 1024; // the tile has 2048 bytes
}

pub(super) fn repaired(k: Builder) {
    let y = k.pointer::<f32>("y");
    let tile = k.tile::<f32>("tile", 16, 32).declare().whole();
    k.role("all").body(|| {
        tile.store(15u32, lane_id(), 1.0);
        y.store(cta_id() * 32 + lane_id(), tile.load(15u32, lane_id()));
    });
}
