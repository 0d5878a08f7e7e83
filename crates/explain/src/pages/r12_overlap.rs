//! Two tiles on the same bytes destroy each other's contents. Kernels do this on purpose to save
//! shared memory, and then declare it with `alias`, so that the checker proves that the tiles are
//! not in use at the same time (R12.alias). Without the declaration the overlap is a mistake in the
//! address computation. The builder places tiles apart, so only a kernel that is edited after the
//! build has such an overlap.

use warpline_ir::Kernel;
use warpline_ir::builder::*;

pub(super) fn broken(kernel: &mut Kernel) {
    kernel.tiles[1].offset = kernel.tiles[0].offset; // `b` is on the bytes of `a`
}

pub(super) fn repaired(k: Builder) {
    let y = k.pointer::<f32>("y");
    let a = k.tile::<f32>("a", 1, 32).unswizzled().declare().whole();
    let b = k.tile::<f32>("b", 1, 32).unswizzled().declare().whole();
    k.role("all").body(|| {
        a.store(0u32, lane_id(), 1.0);
        b.store(0u32, lane_id(), 2.0);
        let sum = a.load(0u32, lane_id()) + b.load(0u32, lane_id());
        y.store(cta_id() * 32 + lane_id(), sum);
    });
}
