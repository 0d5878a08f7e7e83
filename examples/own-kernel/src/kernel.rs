//! `y = factor · x`: one role loads, one multiplies, one stores.

use super::family::{Config, Variant};
use warpline_ir::builder::*;
use warpline_ir::{BuildErrors, Kernel, Target};

/// Threads that multiply.
const THREADS: u32 = 256;
/// Elements of a tile: four for each thread.
pub(crate) const TILE: u32 = 4 * THREADS;

/// The kernel.
pub(crate) fn scale(config: &Config, target: &Target) -> Result<Kernel, BuildErrors> {
    Kernel::build("scale", target, |k| {
        let tiles = k.param::<u32>("tiles").at_most(u32::MAX / TILE);
        let factor = k.param::<f32>("factor");
        let [x, y] = ["x", "y"].map(|name| {
            let pointer = k.pointer::<f32>(name).aligned_to(16);
            pointer.elements(extent(tiles) * TILE)
        });
        let inputs = k.ring("in", config.stages, |s| s.vector::<f32>(TILE));
        let outputs = k.ring("out", config.stages, |s| s.vector::<f32>(TILE));
        let my_tiles = || range(cta_id(), tiles).step_by(grid_ctas());

        k.role("multiply").warps(THREADS / 32).body(|| {
            my_tiles().each(|_| {
                let (from, to) = (inputs.wait(), outputs.acquire());
                let i = thread_in_role() * 4;
                let values = from.load_vec::<4>(0u32, i);
                to.store_vec(0u32, i, values.map(|v| v * factor));
                from.release();
                to.commit();
            });
        });

        k.role("load").body(|| {
            elect(|| {
                my_tiles().each(|t| {
                    let slot = inputs.acquire();
                    slot.load_bytes(slot.tiles(), x.address(t * TILE), TILE * 4);
                    slot.commit();
                });
            });
        });

        k.role("store").body(|| {
            elect(|| {
                my_tiles().each(|t| {
                    let slot = outputs.wait();
                    bulk_store(slot.tiles(), y.address(t * TILE), TILE * 4);
                    bulk_commit();
                    if config.variant == Variant::Repaired {
                        bulk_wait_read(0);
                    }
                    slot.release();
                });
                // The CTA must not end before the last copy has read its shared memory.
                bulk_wait_read(0);
            });
        });
    })
}
