//! A ring with one stage cannot overlap: the producer waits until the consumer has released the
//! only slot, and the consumer waits for the next load. Two to six stages hide the latency of
//! memory. More stages cost shared memory that is better spent on larger tiles.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let (tiles, x) = (k.param::<u32>("tiles"), k.pointer::<f32>("x"));
    let y = k.pointer::<f32>("y");
    let ring = k.ring("ring", 1, |s| s.vector::<f32>(256)); // loads and compute alternate
    k.role("load").body(|| {
        elect(|| {
            steps(tiles).each(|tile| {
                let slot = ring.acquire();
                slot.load_bytes(slot.tiles(), x.address(tile * 256), 1024);
                slot.commit();
            });
        });
    });
    k.role("math").body(|| {
        steps(tiles).each(|tile| {
            let slot = ring.wait();
            let i = (cta_id() * tiles + tile) * 32 + lane_id();
            y.store(i, slot.load(0u32, lane_id()));
            slot.release();
        });
    });
}

pub(super) fn repaired(k: Builder) {
    let (tiles, x) = (k.param::<u32>("tiles"), k.pointer::<f32>("x"));
    let y = k.pointer::<f32>("y");
    let ring = k.ring("ring", 3, |s| s.vector::<f32>(256)); // two loads are in flight
    k.role("load").body(|| {
        elect(|| {
            steps(tiles).each(|tile| {
                let slot = ring.acquire();
                slot.load_bytes(slot.tiles(), x.address(tile * 256), 1024);
                slot.commit();
            });
        });
    });
    k.role("math").body(|| {
        steps(tiles).each(|tile| {
            let slot = ring.wait();
            let i = (cta_id() * tiles + tile) * 32 + lane_id();
            y.store(i, slot.load(0u32, lane_id()));
            slot.release();
        });
    });
}
