//! A CTA of an H100 or H200 can use at most 227 KiB of shared memory, which holds all tiles of all
//! stages and the mbarriers. The driver rejects a launch that needs more. The number of stages and
//! the tile shape together decide the size.

use warpline_ir::builder::*;

pub(super) fn broken(k: Builder) {
    let (tiles, x) = (k.param::<u32>("tiles"), k.pointer::<f32>("x"));
    let y = k.pointer::<f32>("y");
    let ring = k.ring("ring", 8, |s| s.vector::<f32>(8192)); // 8 stages of 32 KiB: 256 KiB
    k.role("load").body(|| {
        elect(|| {
            steps(tiles).each(|tile| {
                let slot = ring.acquire();
                slot.load_bytes(slot.tiles(), x.address(tile * 8192), 32768);
                slot.commit();
            });
        });
    });
    k.role("math").body(|| {
        steps(tiles).each(|tile| {
            let slot = ring.wait();
            y.store(
                (cta_id() * tiles + tile) * 32 + lane_id(),
                slot.load(0u32, lane_id()),
            );
            slot.release();
        });
    });
}

pub(super) fn repaired(k: Builder) {
    let (tiles, x) = (k.param::<u32>("tiles"), k.pointer::<f32>("x"));
    let y = k.pointer::<f32>("y");
    let ring = k.ring("ring", 4, |s| s.vector::<f32>(8192)); // 4 stages of 32 KiB: 128 KiB
    k.role("load").body(|| {
        elect(|| {
            steps(tiles).each(|tile| {
                let slot = ring.acquire();
                slot.load_bytes(slot.tiles(), x.address(tile * 8192), 32768);
                slot.commit();
            });
        });
    });
    k.role("math").body(|| {
        steps(tiles).each(|tile| {
            let slot = ring.wait();
            y.store(
                (cta_id() * tiles + tile) * 32 + lane_id(),
                slot.load(0u32, lane_id()),
            );
            slot.release();
        });
    });
}
