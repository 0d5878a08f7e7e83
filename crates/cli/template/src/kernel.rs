//! `y = relu(x · scale + bias)`: role load → ring "in" → role compute → ring "out" → role store.

use super::family::Config;
use warpline_ir::builder::*;

const WARPS: u32 = 8; // of the role compute
/// Elements of a tile: four vectors of four per thread. A tile may start anywhere in a row.
pub(crate) const TILE: u32 = WARPS * 32 * 4 * 4;

pub(crate) fn scale_bias_relu(k: Builder, config: &Config) {
    let [n, cols] = ["n", "cols"].map(|name| k.param::<u32>(name).multiple_of(4));
    let [x, scale, bias, y] =
        ["x", "scale", "bias", "y"].map(|name| k.pointer::<f32>(name).aligned_to(16));
    let inputs = k.ring("in", config.stages, |s| s.vector::<f32>(TILE));
    let outputs = k.ring("out", config.stages, |s| s.vector::<f32>(TILE));
    let my_tiles = || range(cta_id(), n.div_ceil(TILE)).step_by(grid_ctas());
    let len = |tile: Reg<u32>| (n - tile * TILE).min(TILE); // the last tile may be shorter

    let load = |tile: Reg<u32>| {
        let slot = inputs.acquire();
        slot.load_bytes(slot.tiles(), x.address(tile * TILE), len(tile) * 4);
        slot.commit();
    };
    let compute = |tile: Reg<u32>| {
        let offsets = [0, 1, 2, 3].map(|j| (thread_in_role() + j * WARPS * 32) * 4);
        let columns = offsets.map(|i| (tile * TILE + i) % cols);
        let [a, b] = [scale, bias].map(|v| columns.map(|col| v.load_vec::<4>(col)));
        let (input, output) = (inputs.wait(), outputs.acquire()); // the loads overlap this wait
        for ((i, a), b) in offsets.into_iter().zip(a).zip(b) {
            if_(i.lt(len(tile)), || {
                let x = input.load_vec::<4>(0u32, i);
                output.store_vec(0u32, i, [0, 1, 2, 3].map(|j| relu(x[j].fma(a[j], b[j]))));
            });
        }
        input.release();
        output.commit();
    };
    let store = |tile: Reg<u32>| {
        let slot = outputs.wait();
        bulk_store(slot.tiles(), y.address(tile * TILE), len(tile) * 4);
        bulk_commit();
        bulk_wait_read(0); // the store has read the slot
        slot.release();
    };

    k.role("load").body(|| elect(|| my_tiles().each(load)));
    let role = k.role("compute").warps(WARPS);
    role.body(|| my_tiles().each(compute));
    k.role("store").body(|| elect(|| my_tiles().each(store)));
}
