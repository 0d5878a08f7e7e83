//! The hardware computes a swizzle from the address bits, so a swizzled tile must start at a
//! multiple of its pattern: 1024 bytes for the 128-byte swizzle. An mbarrier is an aligned 8-byte
//! word. A tile at another offset is permuted differently by TMA, wgmma and the threads, and the
//! result is wrong in every run. The builder places tiles correctly, so only a kernel that is
//! edited after the build has a wrong offset.

use warpline_ir::Kernel;
use warpline_ir::builder::*;

pub(super) fn broken(kernel: &mut Kernel) {
    kernel.tiles[0].offset = 512; // the 128-byte swizzle repeats every 1024 bytes
    kernel.shared_bytes += 512;
}

pub(super) fn repaired(k: Builder) {
    let y = k.pointer::<f32>("y");
    let tile = k.tile::<f32>("tile", 8, 32).declare().whole();
    k.role("all").body(|| {
        tile.store(0u32, lane_id(), 1.0);
        y.store(cta_id() * 32 + lane_id(), tile.load(0u32, lane_id()));
    });
}
